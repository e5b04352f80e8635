"""Karmada members: connections, health, execution of Works, status of copies."""
