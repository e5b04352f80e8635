"""Builders for this package's tests: valid moments, of which a test changes one thing."""
