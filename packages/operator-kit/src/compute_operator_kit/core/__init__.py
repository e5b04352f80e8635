"""Values and helpers without Kubernetes requests: keys, objects, JSON, errors, clock, timeouts.

Plans may import them; none of them imports the network.
"""
