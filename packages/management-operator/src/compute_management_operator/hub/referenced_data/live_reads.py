"""Live reads of one ConfigMap or Secret: its metadata where the cache lacks it, its values for one
write.

```
named by none       the UID of the namespace, where a companion is to be removed
refused by name     nothing
absent in the cache a fresh GET: a cache that lags must not withdraw
companion current   nothing: its annotations have version and size
otherwise           the values, by one GET; its version becomes the companion's
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compute_api_types import labels, names
from compute_api_types.referenced_data.references import LONGEST_NAME, RESERVED_NAMES
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.identity import ProjectNamespace
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.referenced_data import verdicts
from compute_management_operator.hub.referenced_data.observe import (
    DataLiveFacts,
    find_companion,
    find_naming,
    find_owners,
    is_ours,
)
from compute_management_operator.hub.referenced_data.references import (
    IN_NAMESPACE,
    REFERENCE,
    VALUES_OF,
    join,
)
from compute_management_operator.hub.referenced_data.values import (
    UNSUPPORTED_TYPES,
    SourceValues,
    read_values,
)
from compute_management_operator.hub.referenced_data.verdicts import (
    LARGEST_OBJECT,
    SourceVerdict,
    Verdicts,
)
from compute_management_operator.planes import DEPLOYMENT, HUB, SECRET
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.controller.mass_delete import MassDeleteGuard, Ruling
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ForbiddenError, PlaneGoneError, ReconcileError
from compute_operator_kit.core.json import member_text
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot


@dataclass(frozen=True, slots=True)
class DataLiveReads:
    """The live reads of all reconciles of the controller."""

    reads: ApiReader
    namespaces: NamespaceUids
    guard: MassDeleteGuard
    verdicts: Verdicts
    clock: Clock

    async def read(self, key: ObjectKey, caches: Caches) -> DataLiveFacts | None:
        """None where there is nothing to reconcile."""
        place = ProjectNamespace(key.plane, key.namespace)
        uid = await self.namespaces.find_or_read(place)
        if isinstance(uid, Absent):
            return None  # the hub namespace goes as a whole
        hub_name = names.derive_hub_namespace(uid)
        is_named = any(True for _ in find_naming(key, caches))
        companion = find_companion(caches, hub_name, key)
        if not is_named:
            if isinstance(companion, Absent):
                return None
            return await self._prove(DataLiveFacts(hub_name), place, key, caches)
        live = await self._judge(key, caches, hub_name, companion)
        is_absent = live.verdict is not None and (
            live.verdict.reason == verdicts.not_found(key).reason
        )
        if is_absent and not isinstance(companion, Absent):
            return await self._prove(live, place, key, caches)
        return live

    # --- judged ---------------------------------------------------------------------------------

    async def _judge(
        self, key: ObjectKey, caches: Caches, hub_name: str, companion: Metadata | Absent
    ) -> DataLiveFacts:
        refused = _refuse_by_name(key)
        if refused is not None:
            return DataLiveFacts(hub_name, verdict=refused)
        try:
            source = await self._find_source(key, caches)
            if isinstance(source, Absent):
                return DataLiveFacts(hub_name, verdict=verdicts.not_found(key))
            return await self._judge_source(key, caches, hub_name, (source, companion))
        except ForbiddenError as error:
            if error.plane != key.plane:
                raise
            return DataLiveFacts(
                hub_name,
                verdict=verdicts.unauthorized(key),
                refused=self.verdicts.count_refused(key.plane),
            )
        except PlaneGoneError:
            raise
        except ReconcileError as error:
            if error.plane != key.plane:
                raise
            # The last verdict stays: a plane that does not answer has not lost its objects.
            return DataLiveFacts(hub_name, verdict=self.verdicts.find(key) or verdicts.unread(key))

    async def _find_source(self, key: ObjectKey, caches: Caches) -> Metadata | Absent:
        entry = caches.lister(key.plane, key.kind).entry(key.namespace, key.name)
        if entry is not None:
            return entry.metadata
        existing = await self.reads.get(key)
        return existing if isinstance(existing, Absent) else existing.metadata

    async def _judge_source(
        self,
        key: ObjectKey,
        caches: Caches,
        hub_name: str,
        both: tuple[Metadata, Metadata | Absent],
    ) -> DataLiveFacts:
        source, companion = both
        version = derive_version(source)
        last = self.verdicts.find(key)
        if not isinstance(companion, Absent):
            is_current = companion.annotations.get(labels.SOURCE_VERSION) == version
            if is_current and not companion.is_deleting:
                return DataLiveFacts(hub_name, verdict=_of_companion(companion, version))
        elif await self._is_taken(hub_name, key):
            return DataLiveFacts(hub_name, verdict=verdicts.name_taken(key))
        is_needed = any(True for _ in find_owners(key, caches, hub_name))
        is_judged = last is not None and last.version == version
        if last is not None and is_judged and not (is_needed and last.is_deliverable):
            return DataLiveFacts(hub_name, verdict=replace(last, is_materialised=False))
        return await self._read_values(key, hub_name, companion, is_needed=is_needed)

    async def _is_taken(self, hub_name: str, key: ObjectKey) -> bool:
        """Whether an object of that name without our label is on the hub; the watch omits it."""
        existing = await self.reads.get(ObjectKey(HUB, key.kind, hub_name, key.name))
        return isinstance(existing, Snapshot) and not is_ours(existing.metadata)

    async def _read_values(
        self, key: ObjectKey, hub_name: str, companion: Metadata | Absent, *, is_needed: bool
    ) -> DataLiveFacts:
        source = await self.reads.get(_with_values(key))
        if isinstance(source, Absent):
            return DataLiveFacts(hub_name, verdict=verdicts.not_found(key))
        values = read_values(key.kind, source.decode(), derive_version(source.metadata))
        verdict = _judge_values(key, values)
        if not verdict.is_deliverable or not is_needed:
            return DataLiveFacts(hub_name, verdict=verdict)
        other = not isinstance(companion, Absent) and await self._has_other_type(
            ObjectKey(HUB, key.kind, hub_name, key.name), values.type
        )
        return DataLiveFacts(hub_name, verdict=verdict, values=values, has_other_type=other)

    async def _has_other_type(self, companion: ObjectKey, given: str) -> bool:
        if companion.kind != SECRET:
            return False
        existing = await self.reads.get(_with_values(companion))
        if isinstance(existing, Absent):
            return False
        return member_text(existing.decode(), "type") != given

    # --- removed --------------------------------------------------------------------------------

    async def _prove(
        self, live: DataLiveFacts, place: ProjectNamespace, key: ObjectKey, caches: Caches
    ) -> DataLiveFacts:
        """The UID again, and the ruling of the mass-delete guard: a companion is to be removed."""
        uid = await self.namespaces.read(place)
        if isinstance(uid, Absent) or names.derive_hub_namespace(uid) != live.hub_name:
            return live
        return replace(live, is_proven=True, ruling=self._rule(key, live.hub_name, caches))

    def _rule(self, key: ObjectKey, hub_name: str, caches: Caches) -> Ruling:
        """By the companions of the namespace that have no source, or that no template names.

        Counted in caches: each removal is preceded by a live read of its own.
        """
        named, now = (hub_name, key.kind.kind, key.name), self.clock.monotonic()
        if self.guard.needs_look(key.plane, named, now):
            companions = list(_companions(caches, hub_name))
            missing = {
                (hub_name, one.kind.kind, one.name)
                for one in companions
                if _is_unfounded(key.plane, key.namespace, one, caches)
            }
            missing.add(named)
            self.guard.record(key.plane, frozenset(missing), len(companions), now)
        return self.guard.judge(key.plane, named, self.clock.monotonic())


def _refuse_by_name(key: ObjectKey) -> SourceVerdict | None:
    if len(key.name) > LONGEST_NAME:
        return verdicts.too_long(key)
    return verdicts.reserved(key) if key.name in RESERVED_NAMES else None


def _judge_values(key: ObjectKey, values: SourceValues) -> SourceVerdict:
    if values.type in UNSUPPORTED_TYPES:
        return verdicts.unsupported(key, values.type, values.version)
    if values.size > LARGEST_OBJECT:
        return verdicts.too_large(key, values.size, values.version)
    return SourceVerdict(version=values.version, size=values.size)


def _of_companion(companion: Metadata, version: str) -> SourceVerdict:
    text = companion.annotations.get(labels.SOURCE_BYTES, "")
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_OBJECT))
    return SourceVerdict(version=version, size=int(text) if is_number else 0, is_materialised=True)


def derive_version(metadata: Metadata) -> str:
    return f"{metadata.uid}/{metadata.resource_version}"


def _with_values(key: ObjectKey) -> ObjectKey:
    return ObjectKey(key.plane, VALUES_OF[key.kind], key.namespace, key.name)


def _companions(caches: Caches, hub_name: str) -> list[ObjectKey]:
    return [
        entry.key
        for kind in VALUES_OF
        for entry in caches.lister(HUB, kind).entries_by_index(IN_NAMESPACE, hub_name)
    ]


def _is_unfounded(plane: PlaneName, namespace: str, companion: ObjectKey, caches: Caches) -> bool:
    value = join(namespace, f"{companion.kind.kind}/{companion.name}")
    if not caches.lister(plane, DEPLOYMENT).entries_by_index(REFERENCE, value):
        return True
    sources = caches.lister(plane, companion.kind)
    return sources.is_synced and sources.entry(namespace, companion.name) is None
