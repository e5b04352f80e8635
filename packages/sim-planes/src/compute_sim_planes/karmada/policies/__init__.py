"""Propagation policies: matching, claims on objects, admission."""
