"""Alerts proved by what operators really expose.

```
troubles.py   a scenario per kind of trouble, and a day without any
stories.py    which alerts each must raise on which cluster, and no others
scraping.py   the operators' own exposition, scraped in virtual time while a story is played
recording.py  what one Prometheus would have stored: a row of samples per series
rules.py      the alerting rules as they ship, and what they read
rule_tests.py recordings and expectations as a file for `promtool test rules`
```

Playing needs Python alone; judging needs Prometheus' own tool, which `nox -s cluster` builds. No
number here is written by hand.
"""
