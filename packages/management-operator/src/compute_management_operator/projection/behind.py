"""Whether what the first lists show of an Instance and its projection says that something is to be
done. Pure.

Only a hint: it decides who is looked at first after a start, never what is done. What it does not
see waits for its turn.
"""

from __future__ import annotations

from compute_management_operator.identities import read_place
from compute_management_operator.kinds import INSTANCE
from compute_management_operator.plane_names import HUB
from compute_management_operator.projection.observe import is_engaged
from compute_management_operator.showing import shown_of
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.served import peek_status


def is_behind(key: ObjectKey, caches: Caches) -> bool:
    """Going, not shown yet, or shown with another status."""
    entry = caches.view(HUB, INSTANCE).entry(key.namespace, key.name) if key.plane == HUB else None
    place = None if entry is None else read_place(entry.metadata)
    if entry is None or place is None or not is_engaged(caches, place.plane):
        return False  # whose it is, or was, only a pass can tell
    shown = caches.view(place.plane, INSTANCE).entry(place.namespace, key.name)
    if shown is None or entry.metadata.is_deleting or shown.metadata.is_deleting:
        return True
    told = peek_status(entry.snapshot.raw)
    return shown_of(told) != shown_of(peek_status(shown.snapshot.raw))
