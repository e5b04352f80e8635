"""Request handlers; each function serves one verb."""
