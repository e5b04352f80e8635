"""Autoscaling in the cell: a HorizontalPodAutoscaler of the cell's own Kubernetes for each
autoscaled deployment (`docs/spec/autoscaling.md`).

```
demand        scale settings → the number that is to run, or the fault in them; pure
observe       deployment, autoscaler and taken names from caches
metric_targets  metrics as an autoscaler has them; pure
plan          number to start from, autoscaler made, repaired, deleted; pure
status        conditions AutoscalingReady and AutoscalingLimited; pure
memory        refused writes, between this controller and that of deployments
watches       changed deployment or autoscaler → keys
```

The number itself is written by Kubernetes' controller of autoscalers, and followed by `deployment`.
No other plane takes part: a surge in a city must not wait for a hub.
"""
