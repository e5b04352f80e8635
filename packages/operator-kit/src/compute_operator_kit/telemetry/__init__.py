"""Logs, metrics, traces and Kubernetes Events.

None of it raises into a reconcile or delays it.
"""
