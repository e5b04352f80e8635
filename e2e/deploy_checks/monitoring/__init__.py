"""Tests of the shipped alerts on metrics that the operators really expose.

```
incidents.py   a scenario per incident, and a day without any
alert_cases.py the alerts each incident must fire on each cluster, and no others
alert_runs.py  runs an incident on simulated planes and records its metrics
scraping.py    scrapes the operators' exposition in virtual time
recording.py   the samples that one Prometheus would have stored
rules.py       the shipped alerting rules, and the metrics they read
rule_tests.py  writes recordings and expectations for `promtool test rules`
```

Recording needs Python alone; evaluation needs promtool, which `nox -s cluster` builds. No sample is
invented.
"""
