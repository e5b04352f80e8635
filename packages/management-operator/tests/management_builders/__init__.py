"""Builders for this package's tests: a valid moment, of which a test changes one thing."""
