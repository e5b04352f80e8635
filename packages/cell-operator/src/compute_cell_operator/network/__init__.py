"""Whether the network of a deployment is there, and what has to be asked for it (cell.md 6).

```
switch    networking on or off                      the setting, or what the cell serves
observe   interface → binding → context → claim → subnet, as the caches have them
plan      what is missing, what is in the way, and whether the Network gate may go
```

A part of `deployment`, which joins its intents; `instance` asks it for refusals. It writes nothing.
"""
