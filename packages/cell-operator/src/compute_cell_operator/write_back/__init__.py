"""The write-back controller: a copy of every Instance of the cell on the hub (cell.md 11, 12).

```
cell Instance ── desired copy ─┐
                               ├─ equal: no read, no write
hub copy (watched) ────────────┘  different: live reads of the hub, checks, then a write
```

The only folder that knows the hub. The cell is the authority over its own Instances; a copy of
another cell or another writer is never changed.
"""
