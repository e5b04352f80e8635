"""Transports of the client: aiohttp for watches and lists, a connection pool for single objects.

The pool exists because a general HTTP client takes five times as long per request.
"""
