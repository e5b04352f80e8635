"""WorkloadDeployment → Instances: creates, rolls, scales and removes them, one step at a time.

```
slots        which Instances belong to a deployment, and in which state each slot is (cell.md 5.2)
plan/        surplus track · slot track · what both amount to             (cell.md 5.4)
```
"""
