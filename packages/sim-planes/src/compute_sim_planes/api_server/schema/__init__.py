"""Structural schemas of CRDs: parsing, pruning, defaulting and validation."""
