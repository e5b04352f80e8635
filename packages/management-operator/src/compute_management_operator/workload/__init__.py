"""The Workload controller: one WorkloadDeployment per placement and city, and the status of both.

```
watches    which Workloads a changed object enqueues, and the cache indexes for that
observe    Workload, its deployments, Locations and Networks of one project, at one moment
plan       finalizer · orphans · deployments                       (management.md 3)
status     placements, then the Workload                           (api.md 4.2, 8.4)
staleness  which Workloads are reconciled first after a start
```

Without it a Workload is accepted and runs nowhere, and its status does not name the blocker.
"""
