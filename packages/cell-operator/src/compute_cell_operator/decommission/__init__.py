"""The `decommission` command: lists and deletes the hub copies and quota claims of a cell that
never returns (operations.md 8.1).

```
command     arguments, credentials, exit code
discovery   copies and claims that the cell left, page by page
removal     deletes them by UID and prints the outcome of each
```

Only a person decides that a cell is gone for good. The cell itself, its Lease and its configuration
are not needed, and the mass-delete guard does not apply: the person confirms the list.
"""
