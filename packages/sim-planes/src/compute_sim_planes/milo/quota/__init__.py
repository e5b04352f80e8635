"""Quota: registrations, grants, claims, their evaluation and the buckets."""
