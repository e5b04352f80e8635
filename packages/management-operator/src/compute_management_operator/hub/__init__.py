"""The controllers that write to the hub or from it, and the modules they share.

```
federation   WorkloadDeployment of a project → its copy on the hub; the copy's status back
policy       one PropagationPolicy per city and hub namespace
projection   Instance on the hub → its read-only copy in the project
referenced_data   ConfigMaps and Secrets that templates name → their companions beside the copies
namespaces   removal of hub namespaces after their project namespace
```

Shared are identity labels, namespace UIDs, cache indexes, sanitising and metrics: a store exists
once per kind and plane, and two controllers that read one label differently would undo each other.
"""
