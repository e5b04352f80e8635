"""Identity labels: the project and namespace that a hub object names, read and written. Pure.

Two labels carry them (management.md 1.1, api.md 11.2). Values that decode to the same project are
equivalent and stay as they are: another platform operator writes them too. A label can be forged,
so it is never the only evidence; the name of a hub namespace carries the UID of the project
namespace, which every access across planes compares as well (README, decision 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from compute_api_types import labels, names
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.objects import Metadata


@dataclass(frozen=True, slots=True)
class ProjectNamespace:
    """A namespace of a project, the source of a hub namespace."""

    plane: PlaneName
    namespace: str


class IdentityMatch(StrEnum):
    """The identity labels of an object, compared with a project namespace."""

    OURS = "ours"
    INCOMPLETE = "incomplete"  # a label is missing or cannot be decoded, none names another
    FOREIGN = "foreign"  # a label names another project or namespace


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
        project = names.decode_project(
            metadata.labels, metadata.annotations, owner=metadata.name or "an object"
        )
    except names.UndecodableIdentityError:
        return None
    return PlaneName(project)


def read_namespace(metadata: Metadata) -> str:
    """The project namespace an object names; "" where it names none."""
    return metadata.labels.get(labels.UPSTREAM_NAMESPACE, "")


def read_project_namespace(metadata: Metadata) -> ProjectNamespace | None:
    """Both; None unless both are there."""
    project, namespace = read_project(metadata), read_namespace(metadata)
    return ProjectNamespace(project, namespace) if project is not None and namespace else None


def match_identity(metadata: Metadata, expected: ProjectNamespace) -> IdentityMatch:
    project, namespace = read_project(metadata), read_namespace(metadata)
    if (project is not None and project != expected.plane) or (
        namespace and namespace != expected.namespace
    ):
        return IdentityMatch.FOREIGN
    is_whole = project is not None and namespace
    return IdentityMatch.OURS if is_whole else IdentityMatch.INCOMPLETE


def derive_identity(source: ProjectNamespace) -> IdentityKeys:
    """The labels and annotation of an object that is created for a project namespace."""
    encoded = names.encode_cluster_name(source.plane)
    key = labels.UPSTREAM_CLUSTER_NAME
    return IdentityKeys(
        labels={key: encoded.value, labels.UPSTREAM_NAMESPACE: source.namespace},
        annotations={} if encoded.full is None else {key: encoded.full},
    )


def derive_missing_identity(metadata: Metadata, source: ProjectNamespace) -> IdentityKeys:
    """What an existing object lacks of these; a label of equal meaning is left as it is."""
    whole = derive_identity(source)
    missing = dict(whole.labels)
    if read_project(metadata) == source.plane:
        del missing[labels.UPSTREAM_CLUSTER_NAME]
    if read_namespace(metadata) == source.namespace:
        del missing[labels.UPSTREAM_NAMESPACE]
    annotations = {key: full for key, full in whole.annotations.items() if key in missing}
    return IdentityKeys(missing, annotations)
