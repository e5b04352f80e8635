"""Project WorkloadDeployment → its copy on the hub, and what the hub says about it back again.

```
lookups   what no cache holds: UIDs of project namespaces, left-over bindings
observe   the deployment, its copy, their namespaces and the policy of its city, at one moment
plan      finalizer · hub namespace · hub copy · finalizing · orphans     (management.md 4)
status    the mirror                                                      (management.md 7)
```
"""
