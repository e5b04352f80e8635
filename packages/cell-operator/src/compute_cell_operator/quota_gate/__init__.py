"""The quota gate: no Instance starts before its claim is granted (quota.md part B).

```
decides, pure                                          does, beside the passes of the cell
  size        what an Instance costs                     worker     wakes, runs, reports; what the
  claim       the claim it needs                                    pass sees of it is `port`
  findings    what is known about its claim              waking     changes of the cell into slots
  plan        what to do about the claim found           look       one look at an Instance's claim,
  status      what `QuotaGranted` says of it                        by `settling` it
  backoff     when to ask again                          vacancy    one look at a vacant slot
  schedule    when to look again                         apply      the one place that writes claims
  sweep       what a sweep makes of claims               sweeping   lists claims, hands on
  observe     verdicts into our values                   projects   watch, proof, probe of a project
                                                         runner     the queue and its workers
                                                         live       asks the cell itself
                                                         ledger     what is remembered of each slot
```

With `decommission` the only folder that knows `compute_quota_client`: what decides stands on values
of our own.
"""
