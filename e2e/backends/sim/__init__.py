"""Simulated planes, neighbours and both operators on one virtual clock, in this process.

```
stage.py       plays a scenario, then judges the run by every oracle
backend.py     the port that the world speaks to
planes.py      who serves what, and under which name a request gets there
processes.py   operators as processes: started, stopped, killed, frozen; wired by their `wiring.py`
neighbours.py  Karmada, Milo, NSO, provider, and their delays
rights.py      who everybody is to each plane, and what was refused
```
"""
