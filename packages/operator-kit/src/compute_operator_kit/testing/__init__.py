"""Fakes and builders for tests of operators.

The runtime does not import them.
"""
