"""Fault injection: plans, transports and watch streams with faults, links that can be cut."""
