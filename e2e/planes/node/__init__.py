"""Real nodes without docker: a kubelet in namespaces of its own, for planes that host pods.

```
slot.py           which addresses, names and cgroups one node has; pure
machine.py        what the machine must have, and what to do where it has not
inotify.py        how many watchers of files are left
preparing.py      Debian's packages, where we are root
configuration.py  what containerd, kubelet, kube-proxy and CNI are told; pure
pause.py          the image every pod's first container is
holder.py         the node's first process, inside its namespaces; runs isolated
leftovers.py      what a node leaves behind, also after kill -9, and its removal
reserving.py      slots that stay ours, and those of a run that crashed
looking.py        processes of nodes, seen from the machine
node.py           one node: up, rebooted, looked into
nodes.py          all nodes of a stack
```

`docs/spec/in-cluster.md` 1 has the settings; they were run as they stand there.
"""
