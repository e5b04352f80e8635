"""Recorded objects of installations that are not ours, put onto the planes of a world.

Without them a takeover would be tried on objects that we imagined.

```
reading.py      the recorded documents, by plane and kind
renaming.py     names and UIDs of the recording in the words of a world
loading.py      onto the planes, in the order in which their neighbours take them as their own
go-operators/   running.json: datum-cloud/compute with federation on Milo v0.32.5, Karmada v1.18.2
                and Kubernetes v1.35.4, five Workloads at their quota limit; deleting.json: the
                objects that differ once two Workloads were deleted with the operators stopped.
                Left out: managedFields, and resourceModels of Clusters
```
"""
