"""Tells how a Workload and its placements are doing. Pure (api.md 4.2, 8.4).

```
told         conditions as somebody has written them; what blocks, as a value
observed     all that the conditions are derived from, grouped by placement once
placements   one placement: Available, Ready
workload     the Workload: Available, Ready
report       numbers, the whole status, and the events of its transitions
```

Numbers are sums over the deployments, conditions name the most specific blocker. What this pass has
just written, or could not, is never counted as done: a deployment carries the spec of this
generation only where the plan found nothing to change.
"""
