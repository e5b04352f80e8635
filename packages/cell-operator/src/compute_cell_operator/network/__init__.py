"""The network of a deployment: whether it is ready, and the objects that are missing (cell.md 6).

```
switch    whether networking is on: the setting, or what the cell serves
observe   interface → NetworkBinding → NetworkContext → SubnetClaim → Subnet, from caches
plan      missing objects, blockers, and whether the Network gate may be removed
```

The deployment controller applies its intents and the instance controller reads refusals. Nothing
here writes.
"""
