"""pytest fixtures and helpers for tests on real planes."""
