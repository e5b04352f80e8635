"""Simulated Kubernetes API servers and external systems (Karmada, Milo, networking, a provider).

Used by tests, the demo and fault injection. The operators never import this package, and it shares
only the API types with them: shared code would hide the same bug on both sides.
"""
