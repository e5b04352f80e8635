"""etcd, Kubernetes and Karmada as processes on one machine.

Everything we claim about them is shown on them. Three layers, each usable alone: `build.py` makes
the binaries, `stack.py` runs a topology of planes out of them, `links.py` spoils the connections
to them. Nothing here ships, and no package imports it.
"""
