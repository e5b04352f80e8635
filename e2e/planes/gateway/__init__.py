"""Milo to its clients: one TLS endpoint in front of the root's and the projects' API servers.

A process of its own, so that it serves whatever event loop a test runs in. What a real
kube-apiserver does by itself is left to it (storage, schema, watches, rights by the root's
SubjectAccessReviews); the gateway adds what only Milo does (neighbours.md 2 and 4.5).
"""
