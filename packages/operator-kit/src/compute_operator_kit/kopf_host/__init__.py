"""Runs kopf as the front door: one supervised thread with a loop of its own, on the home plane.

kopf brings start-up and clean-up hooks, probes and admission; it watches none of our kinds and
writes nothing to any object. Nothing else waits for this thread: it may end, hang or lose the home
plane, and reconciling goes on. When kopf ends by itself it is started again with back-off. Handlers
come from the operator's `front_door.py` through `register`, which is called once per start. With
the front doors this package alone knows kopf, and it knows no handler.

How kopf has to be held, each rule learnt from a failure:

- `standalone`, `scanning.disabled`, `posting.enabled = False`: no peering objects, no watch on CRDs
  and namespaces, no Events.
- `process.ultimate_exiting_timeout = None`: kopf would kill its thread, and with it the process.
- Stopped by an `asyncio.Event` of its own loop, set with `call_soon_threadsafe`: for a
  `threading.Event` kopf parks a worker thread that never returns.
- Its own login handler with our CA and token: the stock ones import whatever client is installed.
- The kinds it admits are told, not discovered: the home plane need not be the one that admits,
  and one that is away at start must not refuse every request.
- A path without a handler is refused by us: to kopf, no handler means no objection.
"""

from compute_operator_kit.kopf_host.admission import Webhook, admission_refusal
from compute_operator_kit.kopf_host.host import FrontDoor, KopfHost

__all__ = ["FrontDoor", "KopfHost", "Webhook", "admission_refusal"]
