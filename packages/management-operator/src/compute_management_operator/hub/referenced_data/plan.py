"""The companion of one ConfigMap or Secret on the hub. Pure (referenced-data.md 3).

```
named by no deployment            deleted                     source absent    withdrawn: deleted
named, needed, deliverable        created, or replaced whole  too large, …     left as it is
named, not needed yet             judged alone
```

A companion is removed only in a hub namespace that is proven ours by a live read of the UID, and
not with many others at once: a project plane that was restored empty looks as if its user had
deleted everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from compute_api_types import labels, reasons
from compute_management_operator.hub.delays import STEP
from compute_management_operator.hub.mass_delete import hold_removal
from compute_management_operator.hub.referenced_data.delays import (
    NAME_TAKEN_RETRY,
    READ_RETRY,
    REFUSED_READS_APART,
)
from compute_management_operator.hub.referenced_data.observe import ObservedReference
from compute_management_operator.hub.referenced_data.references import VALUES_OF
from compute_management_operator.hub.referenced_data.values import SourceValues
from compute_operator_kit.controller.mass_delete import RemovalHeld
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Metadata
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    Intent,
    OwnedFields,
    Plan,
    RequeueAfter,
)

ACTION: Final = "DeliveringReferencedData"
SEEM_UNNAMED: Final = "companions of a project on the hub have no source or no deployment"


def plan(seen: ObservedReference) -> Plan:
    return Plan(tuple(_steps(seen)))


def _steps(seen: ObservedReference) -> Iterator[Intent]:
    verdict = seen.live.verdict
    if not seen.named_by or verdict is None:
        yield from _remove(seen)
        return
    if verdict.reason == reasons.SOURCE_NOT_FOUND:
        # A user deletes a Secret to have it gone from the sites.
        yield from _remove(seen)
    elif verdict.reason == reasons.SOURCE_NAME_TAKEN:
        yield RequeueAfter(seen.key, verdict.reason, NAME_TAKEN_RETRY)
    elif verdict.reason == reasons.SOURCE_UNAUTHORIZED:
        pause = max(READ_RETRY, seen.live.refused * REFUSED_READS_APART)
        yield RequeueAfter(seen.key, verdict.reason, pause)
    elif verdict.reason == reasons.RESOLVING:
        yield RequeueAfter(seen.key, verdict.reason, READ_RETRY)
    elif verdict.is_deliverable and seen.owners and seen.is_hub_ours:
        yield from _deliver(seen)


# --- removed --------------------------------------------------------------------------------------


def _remove(seen: ObservedReference) -> Iterator[Intent]:
    companion = seen.companion
    if isinstance(companion, Absent) or companion.is_deleting:
        return
    if not seen.live.is_proven or not seen.is_hub_ours:
        return
    ruling = seen.live.ruling
    if isinstance(ruling, RemovalHeld):
        yield from hold_removal(seen.key, ruling, seen.operator, ACTION, SEEM_UNNAMED)
        return
    yield Delete(seen.companion_key, companion.uid, reasons.NOT_WANTED)


# --- delivered ------------------------------------------------------------------------------------


def _deliver(seen: ObservedReference) -> Iterator[Intent]:
    companion, values = seen.companion, seen.live.values
    if isinstance(companion, Absent):
        if values is not None:
            yield _create(seen, values)
        return
    if companion.is_deleting:
        yield RequeueAfter(seen.key, reasons.STILL_TERMINATING, STEP)
    elif values is None:
        # The bytes stand; the copies that need them may have changed.
        yield _keep(seen, companion)
    elif seen.live.has_other_type:
        yield Delete(seen.companion_key, companion.uid, reasons.DRIFTED)
        yield RequeueAfter(seen.key, reasons.STILL_TERMINATING, STEP)
    else:
        yield _replace(seen, companion, values)


def _values_key(seen: ObservedReference) -> ObjectKey:
    at = seen.companion_key
    return ObjectKey(at.plane, VALUES_OF[at.kind], at.namespace, at.name)


def _create(seen: ObservedReference, values: SourceValues) -> Ensure:
    return Ensure(
        _values_key(seen),
        OwnedFields(
            labels={labels.REFERENCED_DATA: labels.IS_REFERENCED_DATA},
            annotations=_annotations(seen, values),
            owners=seen.owners,
            has_only_these_owners=True,
            replace=values.replaced,
        ),
        reasons.ABSENT,
        initial={"type": values.type} if values.type else {},
    )


def _replace(seen: ObservedReference, companion: Metadata, values: SourceValues) -> Ensure:
    return Ensure(
        _values_key(seen),
        OwnedFields(
            annotations=_annotations(seen, values),
            owners=seen.owners,
            has_only_these_owners=True,
            replace=values.replaced,
            merge=values.removed,
        ),
        reasons.DRIFTED,
        uid=companion.uid,
        # With the label as it was seen: an object that lost it since is foreign.
        resource_version=companion.resource_version,
    )


def _keep(seen: ObservedReference, companion: Metadata) -> Ensure:
    return Ensure(
        seen.companion_key,
        OwnedFields(
            annotations={labels.REFERENCED_BY: _render_referenced_by(seen)},
            owners=seen.owners,
            has_only_these_owners=True,
        ),
        reasons.DRIFTED,
        uid=companion.uid,
        resource_version=companion.resource_version,
    )


def _annotations(seen: ObservedReference, values: SourceValues) -> dict[str, str | None]:
    return {
        labels.SOURCE_VERSION: values.version,
        labels.SOURCE_BYTES: str(values.size),
        labels.REFERENCED_BY: _render_referenced_by(seen),
    }


def _render_referenced_by(seen: ObservedReference) -> str:
    return json.dumps(list(seen.referenced_by), separators=(",", ":"))
