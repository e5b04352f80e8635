"""The copy of every Instance on the hub (cell.md 11, 12).

```
cell Instance ── wanted copy ──┐
                               ├─ equal: nothing is read, nothing is written
hub copy (watched) ────────────┘  different: ask the hub, check, then write
```

The only folder that knows the hub. The cell is the authority over its own Instances; a copy of
another cell, or of somebody else, is never touched.
"""
