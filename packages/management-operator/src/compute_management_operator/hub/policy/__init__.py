"""The policy controller: one PropagationPolicy per city and hub namespace that a deployment needs.

```
watches   which policy keys a changed object enqueues
observe   needed cities, policies, Clusters of one (hub namespace, base name)
plan      create · repair · delete, and ambiguous cities                   (management.md 5)
```

`LAX` and `lax` share a base name, so one key serves both: a key is reconciled by one worker at a
time, and two workers would give both cities the same policy name.
"""
