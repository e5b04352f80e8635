"""Which project and namespace a hub object says it stands for, and how we say it. Pure.

Two labels carry it (management.md 1.1, api.md 11.2). Values that decode to the same project are
equivalent and stay as they are: another platform operator writes them too. A label is never the
only evidence; the name of a hub namespace carries the UID of the project namespace, and whoever
crosses planes compares that as well (README, decision 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from compute_api_types import labels, names
from compute_operator_kit.keys import PlaneName
from compute_operator_kit.objects import Metadata


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace of a project: what a hub namespace stands for."""

    plane: PlaneName
    namespace: str


class Standing(StrEnum):
    """What an object's labels say about whose it is, against whose it should be."""

    OURS = "ours"
    INCOMPLETE = "incomplete"  # a label is missing or cannot be decoded, none names somebody else
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class IdentityKeys:
    """Labels, and the annotation that completes a shortened one."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.labels)


def read_project(metadata: Metadata) -> PlaneName | None:
    """The project an object names; None where it names none."""
    try:
        found = names.decode_project(
            metadata.labels, metadata.annotations, owner=metadata.name or "an object"
        )
    except names.UndecodableIdentityError:
        return None
    return PlaneName(found)


def read_namespace(metadata: Metadata) -> str:
    """The project namespace an object names; "" where it names none."""
    return metadata.labels.get(labels.UPSTREAM_NAMESPACE, "")


def read_place(metadata: Metadata) -> Place | None:
    """Both; None unless both are there."""
    project, namespace = read_project(metadata), read_namespace(metadata)
    return Place(project, namespace) if project is not None and namespace else None


def judge_standing(metadata: Metadata, wanted: Place) -> Standing:
    project, namespace = read_project(metadata), read_namespace(metadata)
    if (project is not None and project != wanted.plane) or (
        namespace and namespace != wanted.namespace
    ):
        return Standing.FOREIGN
    is_whole = project is not None and namespace
    return Standing.OURS if is_whole else Standing.INCOMPLETE


def derive_identity(wanted: Place) -> IdentityKeys:
    """What an object of ours is born with."""
    encoded = names.encode_cluster_name(wanted.plane)
    key = labels.UPSTREAM_CLUSTER_NAME
    return IdentityKeys(
        labels={key: encoded.value, labels.UPSTREAM_NAMESPACE: wanted.namespace},
        annotations={} if encoded.full is None else {key: encoded.full},
    )


def derive_missing_identity(metadata: Metadata, wanted: Place) -> IdentityKeys:
    """What must be set so that the object names us; what already means it is not among it."""
    whole = derive_identity(wanted)
    said = dict(whole.labels)
    if read_project(metadata) == wanted.plane:
        del said[labels.UPSTREAM_CLUSTER_NAME]
    if read_namespace(metadata) == wanted.namespace:
        del said[labels.UPSTREAM_NAMESPACE]
    beside = {key: full for key, full in whole.annotations.items() if key in said}
    return IdentityKeys(said, beside)
