"""Planes of a stack: topology, command lines, credentials, manifests, and one plane's processes."""
