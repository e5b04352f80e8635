"""Processes of a stack and connections between them: start and end, ports, probes, fault links."""
