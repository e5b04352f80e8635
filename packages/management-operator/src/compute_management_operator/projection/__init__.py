"""Hub Instance → the Instance a user sees in the project, read-only in effect.

```
lookups   the UID of the project namespace, and how many projections lost their source
observe   the hub Instance, what its labels name, and the project's side of it
plan      verify · quarantine · build · remove                 (management.md 8)
status    the hub's, sanitised
```

Level-triggered and without a finalizer on hub Instances: neither a cell nor the hub ever waits for
management.
"""
