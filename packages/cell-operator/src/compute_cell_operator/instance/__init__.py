"""One Instance of the cell: its `QuotaGranted` and `Ready`, its Quota gate (cell.md 8 to 10).

Everything is decided from the Instance, the network evidence of its deployment and the finding of
the quota worker; the pass never waits for a far plane. `Programmed` and `Available` are the
provider's and are read only.
"""
