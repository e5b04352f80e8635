"""Simulated Karmada: its controllers on a hub and on members (docs/spec/neighbours.md 1)."""
