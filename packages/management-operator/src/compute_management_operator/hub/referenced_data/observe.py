"""One ConfigMap or Secret of a project namespace: deployments that name it, copies that
need it, its source and its companion on the hub, at one moment, from caches.

What no cache holds is in `DataLiveFacts`, read before: the UID of the namespace, a verdict, and the
values of the source where the companion is to be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compute_api_types import labels
from compute_management_operator.hub.identity import IdentityMatch, ProjectNamespace, match_identity
from compute_management_operator.hub.referenced_data.references import REFERENCE, join
from compute_management_operator.hub.referenced_data.values import SourceValues
from compute_management_operator.hub.referenced_data.verdicts import SourceVerdict
from compute_management_operator.planes import DEPLOYMENT, HUB, NAMESPACE
from compute_operator_kit.cache.store import CachedObject, Caches
from compute_operator_kit.controller.mass_delete import RemovalHeld, Ruling
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Metadata, OwnerReference

NO_RULING = RemovalHeld(0, 0, ZERO)


@dataclass(frozen=True, slots=True)
class DataLiveFacts:
    """What was read for one reconcile."""

    hub_name: str = ""  # "" where the namespace does not exist, or nothing was read
    is_proven: bool = False  # its UID was read for this reconcile
    verdict: SourceVerdict | None = None  # None: the object is not named
    values: SourceValues | None = None  # where the companion is to be written
    has_other_type: bool = False  # the companion's type is not the source's, and cannot be changed
    ruling: Ruling = NO_RULING  # about a removal
    refused: int = 0  # objects of the project that may not be read, where this one may not


@dataclass(frozen=True, slots=True)
class ObservedReference:
    """One object that templates of a project namespace name, or named."""

    key: ObjectKey  # in the project
    named_by: tuple[str, ...]  # live deployments of the namespace
    owners: tuple[OwnerReference, ...]  # live copies on the hub of these
    companion: Metadata | Absent
    is_hub_ours: bool  # the hub namespace names this project namespace
    live: DataLiveFacts = field(default_factory=DataLiveFacts)
    operator: ObjectKey | None = None  # the operator's own Deployment

    @property
    def referenced_by(self) -> tuple[str, ...]:
        """Shown on the companion: the deployments that name the object."""
        return tuple(f"{self.key.namespace}/{name}" for name in self.named_by)

    @property
    def companion_key(self) -> ObjectKey:
        return ObjectKey(HUB, self.key.kind, self.live.hub_name, self.key.name)


def find_naming(key: ObjectKey, caches: Caches) -> Iterator[CachedObject]:
    """Live deployments of the namespace with a template that names the object."""
    value = join(key.namespace, f"{key.kind.kind}/{key.name}")
    for entry in caches.lister(key.plane, DEPLOYMENT).entries_by_index(REFERENCE, value):
        if not entry.metadata.is_deleting:
            yield entry


def find_companion(caches: Caches, hub_name: str, key: ObjectKey) -> Metadata | Absent:
    entry = caches.lister(HUB, key.kind).entry(hub_name, key.name) if hub_name else None
    return Absent() if entry is None else entry.metadata


def find_owners(key: ObjectKey, caches: Caches, hub_name: str) -> Iterator[OwnerReference]:
    """Live copies of deployments that name the object."""
    copies = caches.lister(HUB, DEPLOYMENT)
    place = ProjectNamespace(key.plane, key.namespace)
    for naming in sorted(find_naming(key, caches), key=lambda entry: entry.key.name):
        copy = copies.entry(hub_name, naming.key.name) if hub_name else None
        if copy is None or copy.metadata.is_deleting:
            continue
        if match_identity(copy.metadata, place) is not IdentityMatch.FOREIGN:
            yield OwnerReference(
                DEPLOYMENT.api_version, DEPLOYMENT.kind, copy.key.name, copy.metadata.uid
            )


def is_ours(metadata: Metadata) -> bool:
    return metadata.labels.get(labels.REFERENCED_DATA) == labels.IS_REFERENCED_DATA


def observe(
    key: ObjectKey, caches: Caches, live: DataLiveFacts, operator: ObjectKey | None = None
) -> ObservedReference | None:
    """None where a cache is not complete."""
    needed = ((key.plane, DEPLOYMENT), (HUB, DEPLOYMENT), (HUB, NAMESPACE), (HUB, key.kind))
    if not all(caches.lister(plane, kind).is_synced for plane, kind in needed):
        return None
    hub_namespace = caches.lister(HUB, NAMESPACE).entry("", live.hub_name)
    place = ProjectNamespace(key.plane, key.namespace)
    return ObservedReference(
        key=key,
        named_by=tuple(sorted(entry.key.name for entry in find_naming(key, caches))),
        owners=tuple(find_owners(key, caches, live.hub_name)),
        companion=find_companion(caches, live.hub_name, key),
        is_hub_ours=hub_namespace is not None
        and not hub_namespace.metadata.is_deleting
        and match_identity(hub_namespace.metadata, place) is IdentityMatch.OURS,
        live=live,
        operator=operator,
    )
