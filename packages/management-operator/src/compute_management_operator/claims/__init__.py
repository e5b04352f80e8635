"""Quota claims in projects that name a cell of another city, or that nothing backs.

```
observe     a claim, the deployment its name leads to, the city of the cell it names
plan        removes a claim that takes the place of a slot of another city     (management.md 8.6)
findings    sums up what a sweep over the claims of a project found
reporting   tells the platform about it: event, log line
controller  one look per Instance that is held by it, one slow sweep per project
```

Without it one cell blocks the slots of another, or spends the quota of a project it runs nothing
for, and the platform does not learn of it. Claims are not watched: that would be one more stream
per project.
"""
