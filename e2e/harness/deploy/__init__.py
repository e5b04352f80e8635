"""Reading `deploy/`: rendered manifests, inputs of kustomizations, and the rights that roles
grant.
"""
