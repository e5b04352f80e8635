"""The instance controller: conditions `QuotaGranted` and `Ready` and the Quota gate of one Instance
(cell.md 8 to 10).

It decides from the Instance, the NetworkBindings of its deployment and the cached result of the
quota controller, so an unreachable project plane never delays a reconcile. `Programmed` and
`Available` belong to the provider and are only read.
"""
