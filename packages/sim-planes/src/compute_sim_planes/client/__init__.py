"""Kubernetes client of the simulated external systems: REST, informers, work queues."""
