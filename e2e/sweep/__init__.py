"""The fault sweep: every single fault of every scenario on simulated planes, judged by all oracles.

`nox -s sweep` runs it. `scenarios` has the stories and `components` what they switch on, `points`
the places where a fault can strike, `plans` the faults for each, `running` one run and its verdict,
`forking` many runs from one prefix, `workers` many of those side by side, `results` the report.
`histories` plays random acts and `transitions` chains of `declarations`, both by `nights`.
"""
