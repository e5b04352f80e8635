"""The command for a cell that never returns: lists, and on demand removes, what it left on the hub
and in the projects (operations.md 8.1).

```
command   arguments, credentials, exit code       finding   what is left, page by page
removal   deletes it, by UID, and says what became of each
```

Nothing infers that a cell is gone for good: a person says so, here. The cell itself, its Lease and
its configuration are not needed, and the mass-delete guard does not apply: the list is what the
person confirms.
"""
