"""The parts of `compute_quota_client.testing.FakeQuota`: an in-memory Milo, for tests only.

    objects    what is stored, as models
    store      versions, history and waiting for changes
    ledger     registrations, grants, reservations and the evaluation of claims
    admission  refusals at creation, with Milo's messages
    patches    JSON patch and merge patch
    routes     parses a request into a route
    streams    watches
    server     answers a route

The library itself does not import this, and it shares no decision with the library: a fake that
evaluated claims by the code under test would share its errors.
"""
