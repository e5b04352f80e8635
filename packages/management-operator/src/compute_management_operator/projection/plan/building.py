"""What a projection looks like: the hub's Instance as a citizen of its project. Pure
(management.md 8.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from compute_api_types import labels, reasons
from compute_api_types.conditions import derive_message
from compute_management_operator.kinds import DEPLOYMENT
from compute_management_operator.projection.observe import Deployment, Instance
from compute_management_operator.projection.status import is_provisional
from compute_operator_kit.intents import Delete, Ensure, OnlyUnder, Owned
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import OwnerReference

# Labels that may have been shortened: their full values stand in annotations of the same key.
COMPLETED_LABELS: Final = (*labels.LINKING_LABELS, labels.CELL, *labels.IDENTITY_LABELS)


def make(
    key: ObjectKey,
    source: Instance,
    deployment: Deployment,
    *,
    only_under: OnlyUnder | None = None,
) -> Ensure:
    """The projection that is not there yet."""
    wanted = derive_owned(source, deployment, held={})
    is_held = is_provisional(source, {})
    return Ensure(key, wanted, reasons.ABSENT, provisional=is_held, only_under=only_under)


def keep(found: Instance, source: Instance, deployment: Deployment) -> Ensure | Delete:
    """The projection that is there: brought in line, or replaced where it shows another one."""
    if is_another(source, found):
        # It must get a UID and an age of its own: to users it is a new instance.
        return Delete(found.key, found.metadata.uid, reasons.REPLACED)
    return Ensure(
        found.key,
        derive_owned(source, deployment, held=found.metadata.labels),
        reasons.DRIFTED,
        uid=found.metadata.uid,
        provisional=is_provisional(source, found.status),
    )


def is_another(source: Instance, found: Instance) -> bool:
    """Whether the projection is of an Instance that had this name before."""
    shown = found.metadata.annotations.get(labels.INSTANCE_UID)
    lives = _annotation(source, labels.INSTANCE_UID)
    return bool(shown and lives) and shown != lives


def derive_owned(source: Instance, deployment: Deployment, *, held: Mapping[str, str]) -> Owned:
    """Everything under the reserved prefixes is ours; every other label and annotation is not."""
    said = {key: text for key, text in source.metadata.labels.items() if labels.is_reserved(key)}
    gone: dict[str, str | None] = {
        key: None for key in held if labels.is_reserved(key) and key not in said
    }
    completed = {key: _annotation(source, key) for key in COMPLETED_LABELS}
    instance_uid = _annotation(source, labels.INSTANCE_UID)
    return Owned(
        labels=gone | said | {labels.WORKLOAD_DEPLOYMENT_UID: deployment.metadata.uid},
        annotations={**completed, labels.INSTANCE_UID: instance_uid},
        owners=(_owner(deployment),),
        has_only_these_owners=True,
        whole={"spec": source.spec},
    )


def _annotation(source: Instance, key: str) -> str | None:
    """An annotation as it may be shown: any text fits one, and this one is a cell's."""
    text = source.metadata.annotations.get(key)
    return None if text is None else derive_message(text)


def _owner(deployment: Deployment) -> OwnerReference:
    """The project's own deployment, by the UID it has there; never a controller, since it makes
    nothing here.
    """
    return OwnerReference(
        api_version=DEPLOYMENT.api_version,
        kind=DEPLOYMENT.kind,
        name=deployment.metadata.name,
        uid=deployment.metadata.uid,
    )
