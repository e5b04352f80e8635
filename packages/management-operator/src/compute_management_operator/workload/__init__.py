"""Workload → one WorkloadDeployment per placement and city, and a status that tells the truth.

```
observe   Workload, its deployments, Locations and Networks of one project, at one moment
plan      finalizer · orphans · deployments                       (management.md 3)
status    placements, then the Workload                           (api.md 4.2, 8.4)
```
"""
