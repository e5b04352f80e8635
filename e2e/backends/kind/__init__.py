"""The suite on kind plus Karmada, where docker is.

```
clusters.py    clusters that kind makes: created, given images, deleted; command lines as data
karmada.py     Karmada on one of them, the cells joined to it
stage.py       opens the stage
__main__.py    `prepare`: says in one line where it cannot run
```

Everything here is command lines: they are as few as can be, and tests run them against executables
that record what they were told.
"""
