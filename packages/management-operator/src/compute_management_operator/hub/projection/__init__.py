"""The projection controller: a hub Instance is shown in its project as a read-only copy.

```
watches            which hub Instances a changed object enqueues
live_reads         the UID of the project namespace, and how many projections lost their source
observe            the hub Instance, what its labels name, and its projection
plan               verify · quarantine · desired · remove      (management.md 8)
status             the hub's, sanitised
recently_created   hub Instances with a projection that this process created
staleness          which Instances are reconciled first after a start
```

Hub Instances get no finalizer, or a cell and the hub would wait for management.
"""
