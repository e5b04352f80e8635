"""Projects at the Milo root → planes that are engaged and disengaged at run time (management.md 9).

```
observe     one Project, and whether its plane is engaged
plan        engage · disengage · leave as it is
engaging    how long it takes, and how many planes are at work
```

Runs on every replica, not only on the leader: a new leader finds its caches filled, and admission
is asked of followers too.
"""
