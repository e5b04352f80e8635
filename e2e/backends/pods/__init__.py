"""The backend `in-cluster`: operators as pods of real kubelets, from shipped images and overlays.

It shows what processes cannot: images, manifests, mounts, tokens, probes, rollouts and the webhook
behind its Service.

```
overlay.py      the kustomization of an installation: images, addresses, replicas
host.py         the protocol of a node that runs pods
pods.py         pods of one Deployment: listed, scraped, killed, frozen
replicas.py     one operator as a Deployment
environment.py  the stack of `real` with nodes, and operators on them
scheduler.py    opens the scheduler of a session
backend.py      the `Backend` protocol with `HasPods`
disruptions.py  memory exhaustion and expired tokens, caused from the host
core.py         the scenarios that run without `--all`
report.py       which objects and rights of deploy/ a session used
```

Planes, links, external controllers, recorders, oracles and the scheduler are those of `real`.
"""
