"""One PropagationPolicy per city and hub namespace, as long as a deployment needs it.

```
observe   needed cities, policies, Clusters of one (hub namespace, base name)
plan      create · put right · delete, and who is ambiguous                (management.md 5)
```

`LAX` and `lax` share a base name, so one key serves both; one worker per key is the serialization.
"""
