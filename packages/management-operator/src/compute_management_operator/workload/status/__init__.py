"""The status of a Workload and of its placements. Pure (api.md 4.2, 8.4).

```
conditions   what blocks, as a value; conditions made of it
inputs       all that the conditions are derived from, grouped by placement once
placements   one placement: Available, Ready
workload     the Workload: Available, Ready
autoscaling  AutoscalingReady, AutoscalingLimited, of both
report       counters, the whole status, and the events of its transitions
```

Counters are sums over the deployments, conditions name the most specific blocker. A deployment
carries the spec of this generation only where the plan changed nothing in it: a write of this
reconcile never counts as done, or the Workload would be Ready with the former template.
"""
