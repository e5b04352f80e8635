"""Clocks, identities and the virtual event loop."""
