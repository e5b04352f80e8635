"""Karmada, simulated: what a hub does with our objects (docs/spec/neighbours.md 1)."""
