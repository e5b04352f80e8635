"""Which cells cannot be heard, by two witnesses: the cell's own Lease on the hub, and Karmada.

```
observe      Leases and Clusters of the hub → one look at all cells
judge        what was seen of all cells → which are dark, which are withheld
verdicts     the result, as federation and projection read it
conditions   what a user reads of a city that cannot be heard
dark_objects which objects of projects state that now
controller   looks every few seconds, and enqueues what a new verdict concerns
```

It writes nothing itself: the mirror and the projection show the verdict.
"""
