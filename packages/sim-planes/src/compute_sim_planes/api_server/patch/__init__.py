"""Patches: JSON patch, merge patches and server-side apply with managed fields."""
