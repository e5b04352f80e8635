"""Recorded objects of another installation, loaded onto the planes of a scenario.

Without them a takeover from the Go operators would be tested on invented objects.

```
reading.py      the recorded documents, by plane and kind
renaming.py     replaces names and UIDs of the recording by those of the scenario
loading.py      writes them in the order in which Milo, Karmada and the provider accept them
go-operators/   running.json: datum-cloud/compute with federation on Milo v0.32.5, Karmada v1.18.2
                and Kubernetes v1.35.4, five Workloads at their quota limit; deleting.json: the
                objects that differ once two Workloads were deleted with the operators stopped.
                Left out: managedFields, and resourceModels of Clusters
```
"""
