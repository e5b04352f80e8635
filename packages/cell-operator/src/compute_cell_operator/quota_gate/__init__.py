"""The quota gate: no Instance starts before its claim is granted (quota.md part B).

```
size        what an Instance costs                    findings   what is known about its claim
claim       the claim it needs          verdict →     plan       what to do about the claim found
observe     verdicts into our values                  status     what `QuotaGranted` says of it
backoff     when to ask again                         schedule   when to look again
```

The only folder that knows `compute_quota_client`, and of it only `claim`, `observe` and `backoff`:
what decides stands on values of our own.
"""
