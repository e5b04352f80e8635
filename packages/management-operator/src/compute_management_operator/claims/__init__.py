"""The claims controller: quota claims of projects that no deployment in their cell's city backs.

```
observe     a claim, the deployment of its slot, the city of the cell it names
plan        removal of a claim that holds the slot of another city             (management.md 8.6)
sweep       a slow list over the claims of one project
findings    claims without backing, counted by cell
events      an event per cell when its number changes
controller  one reconcile per Instance that is held back, one sweep per project and period
```

Without it one cell blocks the slots of another, or spends the quota of a project in which it runs
nothing, unnoticed. Claims are not watched: that would be one more stream per project.
"""
