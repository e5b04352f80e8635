"""A controller runtime for asyncio: one process, many control planes.

Nothing is exported here: importing a pure module would otherwise import the network too.
"""
