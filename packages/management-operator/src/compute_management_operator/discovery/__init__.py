"""The discovery controller: planes are engaged and disengaged by the Projects at the Milo root
(management.md 9).

```
observe     one Project, and whether its plane is engaged
plan        engage · disengage · leave as it is
progress    how long engagement takes, and how many planes are engaged
```

It runs on every replica, not only on the leader: otherwise a new leader would start with empty
caches, and followers, which serve admission from them too, would have none.
"""
