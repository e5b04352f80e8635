"""Milo for its clients: one TLS endpoint in front of the API servers of root and projects.

It is a separate process, so that it does not depend on a test's event loop. Storage, schema,
watches and authorization (by the root's SubjectAccessReviews) are those of real kube-apiservers;
the gateway adds what only Milo does (neighbours.md 2 and 4.5).
"""
