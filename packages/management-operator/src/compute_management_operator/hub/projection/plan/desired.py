"""The desired projection of a hub Instance: its spec, labels, annotations and owner. Pure
(management.md 8.2).

Labels and annotations outside the reserved prefixes are the user's and are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from compute_api_types import labels, reasons
from compute_api_types.conditions import derive_message
from compute_management_operator.hub.projection.observe import HubInstance, InstanceDeployment
from compute_management_operator.hub.projection.status import is_provisional
from compute_management_operator.planes import DEPLOYMENT
from compute_management_operator.stored_status import NO_STATUS
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import OwnerReference
from compute_operator_kit.intents.intents import Delete, Ensure, OwnedFields, RequireExists

# Labels with values that may be shortened; an annotation of the same key has the full value.
COMPLETED_LABELS: Final = (*labels.LINKING_LABELS, labels.CELL, *labels.IDENTITY_LABELS)


def create(
    key: ObjectKey,
    source: HubInstance,
    deployment: InstanceDeployment,
    *,
    requires: RequireExists | None = None,
) -> Ensure:
    """A projection that does not exist yet."""
    desired = derive_owned(source, deployment, existing={})
    may_defer = is_provisional(source, NO_STATUS)
    return Ensure(key, desired, reasons.ABSENT, may_defer=may_defer, requires=requires)


def update(
    projection: HubInstance, source: HubInstance, deployment: InstanceDeployment
) -> Ensure | Delete:
    """An existing projection: updated, or replaced where it is of a former Instance."""
    if is_another(source, projection):
        # Users see a new instance, so it gets a UID and an age of its own.
        return Delete(projection.key, projection.metadata.uid, reasons.REPLACED)
    return Ensure(
        projection.key,
        derive_owned(source, deployment, existing=projection.metadata.labels),
        reasons.DRIFTED,
        uid=projection.metadata.uid,
        may_defer=is_provisional(source, projection.status),
    )


def is_another(source: HubInstance, projection: HubInstance) -> bool:
    """Whether the projection is of a former Instance of this name."""
    shown = projection.metadata.annotations.get(labels.INSTANCE_UID)
    current = _annotation(source, labels.INSTANCE_UID)
    return bool(shown and current) and shown != current


def derive_owned(
    source: HubInstance, deployment: InstanceDeployment, *, existing: Mapping[str, str]
) -> OwnedFields:
    """Labels and annotations under the reserved prefixes are ours, all others are not.

    `existing` are the labels of the projection; reserved ones that the source lacks are removed.
    """
    own = {key: text for key, text in source.metadata.labels.items() if labels.is_reserved(key)}
    removed: dict[str, str | None] = {
        key: None for key in existing if labels.is_reserved(key) and key not in own
    }
    completed = {key: _annotation(source, key) for key in COMPLETED_LABELS}
    instance_uid = _annotation(source, labels.INSTANCE_UID)
    return OwnedFields(
        labels=removed | own | {labels.WORKLOAD_DEPLOYMENT_UID: deployment.metadata.uid},
        annotations={**completed, labels.INSTANCE_UID: instance_uid},
        owners=(_owner(deployment),),
        has_only_these_owners=True,
        replace={"spec": source.spec},
    )


def _annotation(source: HubInstance, key: str) -> str | None:
    """A sanitised annotation: it comes from a cell and may hold any text."""
    text = source.metadata.annotations.get(key)
    return None if text is None else derive_message(text)


def _owner(deployment: InstanceDeployment) -> OwnerReference:
    """The project's deployment; not as the controller, since it does not create Instances there."""
    return OwnerReference(
        api_version=DEPLOYMENT.api_version,
        kind=DEPLOYMENT.kind,
        name=deployment.metadata.name,
        uid=deployment.metadata.uid,
    )
