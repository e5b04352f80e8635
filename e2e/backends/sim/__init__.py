"""The backend `sim`: planes, external systems and both operators in one process and virtual time.

A run is deterministic, so a failure is replayed from scenario, seed and fault plan.

```
scheduler.py   runs a scenario, then evaluates every oracle
backend.py     the `Backend` protocol on simulated planes
planes.py      simulated API servers by name, and transports to them
processes.py   operators as processes: started, stopped, killed, frozen; wired by their `wiring.py`
replicas.py    the replicas of one operator, restarted as a kubelet would
external.py    Karmada, Milo, NSO, provider, and their delays
rights.py      the identity of each user on each plane, and requests that were refused
oracles.py     the oracles that apply to a simulated run
```
"""
