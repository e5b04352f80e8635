"""The parts of `compute_quota_client.testing.FakeQuota`: an in-memory Milo, for tests only.

    objects    what is stored, as models
    store      versions, history and who waits for it
    ledger     registrations, grants, reservations and the evaluation of claims
    admission  what is refused at creation, in Milo's words
    patches    JSON patch and merge patch
    routes     from a request to what it asks for
    streams    watches
    server     from what is asked for to an answer

Nothing of the library itself imports this, and it shares no decision with the library: a fake that
judged claims by the code it is there to test would share its mistakes.
"""
