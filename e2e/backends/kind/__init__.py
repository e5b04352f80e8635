"""The backend `kind`: the stack of `pods` on kind clusters, with Karmada in pods. Needs docker.

```
addresses.py      addresses on the docker network, folders inside nodes; pure
configuration.py  configuration of a cluster for kind and kubeadm; pure
commands.py       runs docker, kind, karmadactl and ip; reports what is missing
machine_lock.py   one run at a time
clusters.py       one cluster: created, given images, routed to, switched off and on, deleted
node.py           its node as a `PodHost`
servers.py        its API server, as a stack starts and stops one
karmada.py        Karmada on one of the clusters, made a plane of the stack
kind_clusters.py  all clusters of a stack: the port `e2e.harness.stack.clusters.Clusters`
environment.py    the stack of `pods` on them
scheduler.py      opens the scheduler
fake_programs.py  fakes of kind, docker, karmadactl and ip for tests without docker
__main__.py       `prepare`: one line if this machine cannot run it
```

A cluster gets the stack's CA, tokens, signing key and audit policy, and serves at a port of the
stack's address; everything else is the code of `pods`. Milo's gateway, root and projects are
processes of the stack.

Only a run with docker shows the following:

- kind and kubeadm accept `configuration.py`: mounted `ca.*` and `sa.*` are used and not replaced,
  and the API server's pod finds mounted files. Flags, files and settings are tested without docker
  on a kube-apiserver that a fake of kind starts from the same file
  (`e2e/harness/tests/cluster/test_planes_of_clusters.py`);
- `karmadactl init` accepts its flags (those of the version in
  `e2e/harness/programs/karmada/go.mod`), and its API server restarts after it was reconfigured;
- nodes and their pods come back after `docker kill` and `docker start`;
- this machine reaches pods and Services through `ip route`, and pods reach this machine at the
  network's gateway, which a firewall may prevent.
"""
