"""Referenced data: ConfigMaps and Secrets that templates name, brought to the hub beside the copies
of deployments.

```
references   indexes over templates
data_caches  the cached kinds that serve them
values       values of one object, fetched for one write and dropped
verdicts     whether an object can be delivered, per project object; remembered, without values
observe      deployments that name an object or need it, its source, its companion, at one moment
plan         create · replace · withdraw · delete the companion          (referenced-data.md 3)
expectation  annotations and condition of a deployment, from verdicts    (referenced-data.md 4)
distribution copies whose data Karmada does not distribute               (referenced-data.md 5)
resolver     the live part of the expectation, for federation
controller   one key per object of a project namespace
```

Without it a cell waits for the data of its Instances for ever.
"""
