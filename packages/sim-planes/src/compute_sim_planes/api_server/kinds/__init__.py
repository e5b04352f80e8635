"""Served kinds: built-in kinds, CRDs, object metadata, discovery and OpenAPI documents."""
