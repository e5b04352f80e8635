"""Simulated control planes and neighbours, for tests, the demo and fault injection.

Never imported by what it checks; shares only the API types with it.
"""
