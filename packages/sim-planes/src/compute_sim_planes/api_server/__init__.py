"""A Kubernetes API server in one process, strict where fakes usually lie.

Pure rules (schema, patches, selectors, ownership, rights) are apart from storage and transport, so
that each can be tested without a server. Nothing in here knows our operators.
"""
