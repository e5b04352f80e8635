"""The suite on kind plus Karmada, where docker is.

```
places.py         addresses on docker's network, folders inside nodes; pure
configuration.py  what kind and kubeadm are told of a cluster; pure
commands.py       runs docker, kind, karmadactl and ip; says what is missing
holding.py        one run at a time
clusters.py       one cluster: created, given images, routed to, switched off and on, deleted
node.py           its node, looked into and rebooted as nodes of ours are
servers.py        its API server, as a stack runs one
karmada.py        Karmada on one of them, opened to the stack
planes.py         all clusters of a stack: the port `e2e.planes.clusters.Clusters`
theatre.py        `in_cluster` on them
stage.py          opens the stage
__main__.py       `prepare`: says in one line where it cannot run
```

A cluster takes the stack's own authority, tokens, signing key and audit policy, and serves at a
port of the stack's address; from there on everything is the code of `in_cluster`. Milo's gateway,
root and projects are processes of the stack, as everywhere.

What only docker can show, because nothing here runs without it:

- that kind and kubeadm take `configuration.py` as it stands: mounted `ca.*` and `sa.*` are used
  and not made anew, a file of a mount is found by the API server's pod. Which flags, files and
  settings there are is tried without docker, on a kube-apiserver that a double of kind starts from
  that very file (`e2e/planes/tests/cluster/test_planes_of_clusters.py`);
- that `karmadactl init` takes its flags (they are those of the version in
  `e2e/planes/karmada/go.mod`), and that its API server comes back once it was opened;
- that nodes come back from `docker kill` and `docker start`, and pods on them;
- that this machine reaches pods and Services through `ip route`, and pods reach this machine at the
  network's gateway: a firewall on it may say otherwise.
"""
