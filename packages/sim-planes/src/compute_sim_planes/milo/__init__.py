"""Simulated Milo: projects, their control planes and quota (docs/spec/neighbours.md 2).

`simulation.Milo` is all of it in one process. The controllers in `projects` and `quota` only use a
`Client`, so they also work over HTTP with real API servers; `simulation`, `planes`, `router` and
`quota.admission` need the simulated one.
"""
