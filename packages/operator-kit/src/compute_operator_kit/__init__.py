"""A controller runtime for asyncio: one process, many control planes.

Nothing is re-exported here: a package that gathered everything would drag the network into pure
modules.
"""
