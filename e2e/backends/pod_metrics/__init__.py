"""Metrics of Pods in a cell, as `metrics.k8s.io` that Kubernetes' controller of autoscalers reads.

```
definition    the kind PodMetrics as a CRD: its objects are what the controller lists
usage         a load → what one Pod uses; pure
stand_ins     Pods of running Instances, where no kubelet runs; pure
plan          objects of a cell → Pods and PodMetrics that are written, in order; pure
publisher     lists the objects of a cell every half second and carries out the plan
kubelet       samples of `/metrics/resource` of a node → what its Pods use; pure
scraper       the same PodMetrics from kubelets, where containers run
```

A scenario sets a load, and the number of Instances follows by the controller's own arithmetic. A
scenario that wrote the number itself would show neither that the selector finds the Pods nor that
the conditions of a real autoscaler are read.
"""
