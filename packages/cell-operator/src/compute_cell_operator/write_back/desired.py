"""The desired copy of an Instance on the hub, and the hash by which copies are compared. Pure
(cell.md 11).

Only these fields are ours. All others, quarantine annotations among them, are neither compared nor
written, or management would lose its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from compute_api_types import labels
from compute_cell_operator.planes import DEPLOYMENT
from compute_cell_operator.write_back.observe import InstanceDocument
from compute_operator_kit.core.json import JsonObject, encode_canonical
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.objects import Metadata, OwnerReference
from compute_operator_kit.intents.intents import owner_as_json

LABELS: Final = (*labels.LINKING_LABELS, *labels.IDENTITY_LABELS, labels.CELL)
ANNOTATIONS: Final = (labels.INSTANCE_UID, *labels.LINKING_LABELS, *labels.IDENTITY_LABELS)
"""The UID, and for each label with a shortened value the full one (api.md 11)."""


@dataclass(frozen=True, slots=True)
class DesiredCopy:
    """The fields of a copy that are ours; a text of None is absent."""

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]
    owner: OwnerReference | None
    spec: JsonObject
    status: JsonObject


def derive_copy(
    cell: str, instance: InstanceDocument, namespace: Metadata | None, owner_uid: str
) -> DesiredCopy:
    """The copy of an Instance, with the identity labels of its Namespace on the cell.

    Without a Namespace there is no identity, and the checks refuse the write.
    """
    metadata = instance.metadata
    identity: Mapping[str, str] = namespace.labels if namespace is not None else {}
    full: Mapping[str, str] = namespace.annotations if namespace is not None else {}
    return DesiredCopy(
        labels={
            **_pick(metadata.labels, labels.LINKING_LABELS),
            **_pick(identity, labels.IDENTITY_LABELS),
            labels.CELL: cell,
        },
        annotations={
            labels.INSTANCE_UID: metadata.uid,
            **_pick(metadata.annotations, labels.LINKING_LABELS),
            **_pick(full, labels.IDENTITY_LABELS),
        },
        owner=derive_owner(metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, ""), owner_uid),
        spec=instance.spec,
        status=instance.status,
    )


def derive_owner(deployment: str, uid: str) -> OwnerReference | None:
    """The hub's deployment; None while its name or UID is not known."""
    if not deployment or not uid:
        return None
    return OwnerReference(
        api_version=DEPLOYMENT.api_version,
        kind=DEPLOYMENT.kind,
        name=deployment,
        uid=Uid(uid),
        controller=True,
        block_owner_deletion=True,
    )


def read_copy(existing: InstanceDocument) -> DesiredCopy:
    """The same fields of an existing copy."""
    metadata = existing.metadata
    return DesiredCopy(
        labels=_pick(metadata.labels, LABELS),
        annotations=_pick(metadata.annotations, ANNOTATIONS),
        owner=metadata.controller,
        spec=existing.spec,
        status=existing.status,
    )


def derive_hash(copy: DesiredCopy) -> str:
    """Equal for equal copies, whatever the order of their keys."""
    body = {
        "labels": copy.labels,
        "annotations": copy.annotations,
        "owner": None if copy.owner is None else owner_as_json(copy.owner),
        "spec": copy.spec,
        "status": copy.status,
    }
    return sha256(encode_canonical(body)).hexdigest()


def _pick(texts: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, str | None]:
    return {key: texts.get(key) for key in keys}
