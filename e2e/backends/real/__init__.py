"""Real planes, both operators as processes, neighbours over HTTP: one stack for all scenarios.

```
stage.py        plays scenarios: most side by side, some alone, and judges what they left
backend.py      the port that the world speaks to, for one scenario
people.py       who acts in a scenario and is no operator
theatre.py      the stack of a session, with all that is installed on it and works beside it
installing.py   deploy/ on every plane, and the credentials it provides for
operators.py    operators as processes: started, stopped, killed, frozen, started again
programs.py     which programs these are: of this environment, or of wheels built for the run
links.py        every way from an operator to a plane, and how it is spoilt
neighbours.py   provider and NSO in the cells
recording.py    what planes held, version by version
auditing.py     what was asked of planes, read from their audit logs
judging.py      the oracles of `docs/spec/faults.md` 5
backstage.py    the thread in which links, neighbours and records live
```
"""
