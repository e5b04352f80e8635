"""kopf in a supervised thread of its own, as the dispatcher of admission reviews to handlers.

```
kopf_host         the thread: starts kopf, restarts it with back-off, stops it, reports its health
server            the HTTPS server in front of kopf: certificate, limits, metrics, whole answers
discovery         the only API server that kopf knows: a loopback address with the admitted kinds
admission_review  AdmissionReviews on the wire
loop_link         the stop and end signals between the two event loops
logs              kopf's log records, at the levels that they have for us
```

Reconciling never waits for this thread: kopf may end or hang and no plane notices. kopf holds no
credentials, watches no kind and writes to no object. How it is embedded, each rule after a failure:

- `standalone`, `scanning.disabled`, `posting.enabled = False`: no peering objects, no watch on CRDs
  and namespaces, no Events.
- `process.ultimate_exiting_timeout = None`: kopf would kill its thread, and with it the process.
- Stopped by an `asyncio.Event` of its own loop, set with `call_soon_threadsafe`: for a
  `threading.Event` kopf parks a worker thread that never returns.
- Discovery from a loopback server: kopf opens its port only after discovery, the home plane need
  not serve Workloads, and one that is away at start must not refuse every request.
- Every review is passed as a CREATE: for other operations kopf keeps a record per object until it
  watches the deletion, which it never does here.
- A path without a handler is answered 404 by the server: to kopf, no handler means no objection.
"""
