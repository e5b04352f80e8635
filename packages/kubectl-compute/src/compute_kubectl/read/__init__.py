"""Planes read into a capture: contexts, bounded requests, and what is asked of which plane."""
