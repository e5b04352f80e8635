"""The federation controller: a project's WorkloadDeployment is copied to the hub, and the copy's
status is mirrored back.

```
watches     which deployments a changed object enqueues
live_reads  what no cache holds: UIDs of project namespaces, left-over bindings
observe     the deployment, its copy, their namespaces and the policy of its city, at one moment
plan        finalizer · hub namespace · hub copy · finalize · orphans     (management.md 4)
status      the mirror                                                    (management.md 7)
tracker     what is remembered between reconciles
staleness   which deployments are reconciled first after a start
```

Without it no cell receives a deployment, and a user does not learn what became of it.
"""
