"""Caches of API servers: stores, indexes, reflectors and memory budgets.

Reconciles decide from caches, so that a settled object costs no request.
"""
