"""A Kubernetes API server in one process, as strict as kube-apiserver.

Pure rules (schema, patches, selectors, field ownership, RBAC) are separate from storage and
transport, so that each can be tested without a server. Nothing here depends on our operators.
"""
