"""The part of kustomize that `deploy/` uses, in Python alone; `e2e.manifests` is its door.

What kustomize can do and this cannot is refused by name, never passed over.
"""
