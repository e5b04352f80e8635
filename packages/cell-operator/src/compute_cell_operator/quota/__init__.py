"""Quota: no Instance starts before its ResourceClaim is granted (quota.md part B).

```
values and decisions, pure                         requests and state
  size         how much an Instance takes            controller      reconcile of one slot
  project_ref  project, claim and Instance refs      apply           the only writer of claims
  claim        the desired claim                     release         claims of empty slots
  result       `ClaimState` and `QuotaResult`        live_reads      live reads of the cell
  plan         the steps for a claim                 project_client  one project: watch, outage
  status       `QuotaGranted` by `ClaimState`        state           what is kept of each slot
  retry        when a claim is requested again       watches         changes to slots
  observe      caches and answers to values          orphans         claims without a slot
```

With `decommission`, the only folder that imports `compute_quota_client`.
"""
