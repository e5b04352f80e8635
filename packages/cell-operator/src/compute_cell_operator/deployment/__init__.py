"""The deployment controller: Instances of one WorkloadDeployment, created, rolled and removed.

```
slots        Instances of a deployment and the state of each slot             (cell.md 5.2)
plan/        surplus track, slot track, network and repairs, as intents       (cell.md 5.4)
status/      counters, conditions and events                                  (cell.md 7)
```
"""
