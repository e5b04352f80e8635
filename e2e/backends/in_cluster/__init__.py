"""Operators as pods of real kubelets: the shipped images, overlays and rights, the same scenarios.

```
overlay.py      the kustomization an installation writes over ours; images, addresses, replicas
host.py         the node that pods are on, whoever makes it
pods.py         pods of one Deployment: found, looked at, killed, frozen
crew.py         one operator as a Deployment: what `real` does with processes
theatre.py      the stack of `real` with nodes, and operators on them
stage.py        opens the stage of a session
backend.py      the world's port, with what only pods can suffer
harm.py         memory that runs out, tokens that expire; done from the host
core.py         which scenarios are played without `--all`
report.py       which objects and rights of deploy/ a run used
```

Everything else (planes, links, neighbours, records, oracles, the stage) is that of `real`.
"""
