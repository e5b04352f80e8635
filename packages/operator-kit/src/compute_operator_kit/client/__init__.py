"""The client of one API server: requests, watches, flow control and credentials.

Errors of HTTP and of connections end here: callers get `ReconcileError`s or values.
"""
