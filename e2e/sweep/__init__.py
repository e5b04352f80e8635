"""The fault sweep: every single fault of every scenario on simulated planes, judged by all oracles.

`nox -s sweep` runs it. `scenarios` has the stories, `points` the places where a fault can strike,
`plans` the faults for each, `running` one run and its verdict, `forking` many runs from one prefix.
"""
