"""Referenced data in a cell: whether the ConfigMaps and Secrets that a template names are there
(`docs/spec/referenced-data.md` 6).

```
judgement     tokens, annotations and copies → condition and completeness; pure
observe       the same from caches, for a deployment and for an Instance
watches       changed copy or deployment → keys
metrics       Instances behind the gate, and how long they waited
```

Values are never read: ConfigMaps and Secrets are cached as metadata alone.
"""
