"""The API servers of a process: registry, clients, cache compaction and optional kinds.

Each plane has its own client, caches and health, so that one that fails does not affect others.
"""
