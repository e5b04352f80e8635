"""Real etcd, Kubernetes and Karmada as processes on one machine, for tests.

`programs` builds the executables, `stack` runs a topology of planes with them, and
`processes/links.py` injects faults into connections; each can be used by itself. Nothing here
ships, and no package imports it.
"""
