"""HTTP: server, transport, request parsing, representations and watch streams."""
