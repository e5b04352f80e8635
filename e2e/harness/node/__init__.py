"""Real nodes without docker: a kubelet in its own namespaces, for planes that run pods.

```
machine.py         requirements of the machine, with remedies
inotify.py         available inotify instances
preparing.py       installs Debian packages as root
configuration.py   configuration of containerd, kubelet, kube-proxy and CNI; pure
pause.py           the image of a pod's sandbox container
holder.py          the node's first process, inside its namespaces; runs isolated
leftovers.py       finds and removes what a node leaves, also after kill -9
reserving.py       slots of this run, and cleanup after crashed runs
process_lookup.py  processes of nodes, seen from the machine
node.py            one node: started, rebooted, inspected
nodes.py           all nodes of a stack
```

The slot of a node (addresses, names, cgroups) is `e2e/harness/planes/node_slot.py`.
`docs/spec/in-cluster.md` 1 has the settings, which were tested as they are there.
"""
