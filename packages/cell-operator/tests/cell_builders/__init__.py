"""Builders for this package's tests: valid observations, of which a test changes one field."""
