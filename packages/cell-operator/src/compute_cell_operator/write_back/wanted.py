"""The copy that is wanted on the hub, and the hash that tells whether it is there. Pure (cell.md
11).

Only these fields are ours; whatever else a copy carries, quarantine annotations among it, stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from compute_api_types import labels
from compute_cell_operator.kinds import DEPLOYMENT
from compute_cell_operator.write_back.observe import Document
from compute_operator_kit.intents import owner_as_json
from compute_operator_kit.keys import Uid
from compute_operator_kit.objects import Metadata, OwnerReference
from compute_operator_kit.wire import JsonObject, encode_canonical

LABELS: Final = (*labels.LINKING_LABELS, *labels.IDENTITY_LABELS, labels.CELL)
ANNOTATIONS: Final = (labels.INSTANCE_UID, *labels.LINKING_LABELS, *labels.IDENTITY_LABELS)
"""The UID, and beside each label that holds a shortened value the full one (api.md 11)."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Exactly the fields of a copy that are ours; None among the texts: not there."""

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]
    owner: OwnerReference | None
    spec: JsonObject
    status: JsonObject


def derive_copy(cell: str, instance: Document, namespace: Metadata | None, owner_uid: str) -> Copy:
    """What the hub should have of an Instance; the identity is that of the cell's Namespace.

    One that is not there names nobody; the checks refuse to write that.
    """
    metadata = instance.metadata
    identity: Mapping[str, str] = namespace.labels if namespace is not None else {}
    full: Mapping[str, str] = namespace.annotations if namespace is not None else {}
    return Copy(
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
    """The hub's deployment; None while nobody has said which one that is."""
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


def read_copy(found: Document) -> Copy:
    """The same fields of a copy that is there."""
    metadata = found.metadata
    return Copy(
        labels=_pick(metadata.labels, LABELS),
        annotations=_pick(metadata.annotations, ANNOTATIONS),
        owner=metadata.controller,
        spec=found.spec,
        status=found.status,
    )


def derive_hash(copy: Copy) -> str:
    """Equal for equal copies, whatever the order of their keys."""
    body = {
        "labels": copy.labels,
        "annotations": copy.annotations,
        "owner": None if copy.owner is None else owner_as_json(copy.owner),
        "spec": copy.spec,
        "status": copy.status,
    }
    return sha256(encode_canonical(body)).hexdigest()


def _pick(found: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, str | None]:
    return {key: found.get(key) for key in keys}
