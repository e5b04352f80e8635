"""Milo, simulated: projects, their control planes and quota (docs/spec/neighbours.md 2).

`simulation.Milo` is all of it in one process. Its controllers stand on the neighbours' client port
alone, so `quota`, `registrations`, `default_grants` and `projects` also work over HTTP beside real
API servers; nothing but `simulation`, `planes`, `front` and `quota_admission` knows the simulated
one.
"""
