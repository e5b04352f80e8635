"""The controller runtime: specifications, workqueue, runner, manager and reconcile.

It runs one worker per key and bounds reconciles per tenant, so that none starves another.
"""
