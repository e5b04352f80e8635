"""The scenario API: planes, objects, operators and links as test scenarios use them.

Scenarios import only this package, so the same test runs on every backend.
"""
