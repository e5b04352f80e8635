"""The live part of what a deployment expects of its data, for the federation controller.

Before a new generation is written to the hub, each object that its template names is read as
metadata, so that "expected" is not older than the last write that the user saw acknowledged. A
verdict that is missing is waited for, `VERDICT_PATIENCE` long from the first sight of a generation.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_api_types import labels
from compute_api_types.referenced_data.references import Reference
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.referenced_data.delays import (
    MOST_READS_AT_ONCE,
    VERDICT_PATIENCE,
)
from compute_management_operator.hub.referenced_data.distribution import DataDistribution
from compute_management_operator.hub.referenced_data.expectation import (
    DataExpectation,
    DeploymentData,
    derive_expectation,
)
from compute_management_operator.hub.referenced_data.live_reads import derive_version
from compute_management_operator.hub.referenced_data.references import (
    KIND_BY_NAME,
    read_references,
)
from compute_management_operator.hub.referenced_data.verdicts import SourceVerdict, Verdicts
from compute_management_operator.planes import DEPLOYMENT, HUB
from compute_operator_kit.cache.store import CachedObject, Caches
from compute_operator_kit.core.clock import ZERO, Clock
from compute_operator_kit.core.errors import ForbiddenError, ReconcileError
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent

NOT_DELIVERED: Final = ""


@dataclass(frozen=True, slots=True)
class _Sight:
    """The first sight of one generation, and the versions that were read for it."""

    version: tuple[str, int]
    at: timedelta
    fresh: Mapping[str, str] | None = None


class DataResolver:
    """Expectations of deployments; shared by the controllers of data and of federation."""

    def __init__(self, reads: ApiReader, clock: Clock) -> None:
        self.verdicts = Verdicts()
        self.distribution = DataDistribution(reads, clock)
        self._reads = reads
        self._clock = clock
        self._sights: dict[ObjectKey, _Sight] = {}
        self._errors: dict[ObjectKey, str] = {}

    async def resolve(
        self, key: ObjectKey, caches: Caches, hub_name: str
    ) -> DataExpectation | None:
        """None for a deployment that is gone or going, which states nothing."""
        entry = caches.lister(key.plane, DEPLOYMENT).entry(key.namespace, key.name)
        if entry is None or entry.metadata.is_deleting:
            self.drop(key)
            return None
        named = read_references(entry)
        if hub_name:
            await self.distribution.check(hub_name, key.name)
        recorded = _read_recorded(caches, hub_name, entry)
        verdicts = self._find_verdicts(key, named)
        if not named or recorded is not None:
            self._sights.pop(key, None)
            data = DeploymentData(named, verdicts, recorded)
        else:
            data = await self._of_new_generation(entry, named, verdicts)
        expectation = derive_expectation(data)
        self._note_error(key, expectation)
        return expectation

    async def _of_new_generation(
        self,
        entry: CachedObject,
        named: tuple[Reference, ...],
        verdicts: Mapping[str, SourceVerdict],
    ) -> DeploymentData:
        key, metadata = entry.key, entry.metadata
        version = (metadata.uid, metadata.generation)
        sight = self._sights.get(key)
        if sight is None or sight.version != version:
            sight = _Sight(version, self._clock.monotonic())
            self._sights[key] = sight
        left = max(ZERO, sight.at + VERDICT_PATIENCE - self._clock.monotonic())
        if len(verdicts) == len(named) and sight.fresh is None:
            fresh = await self._read_versions(key, named)
            if fresh is None and left > ZERO:
                # What the plane has now is not known: as if a verdict were missing.
                return DeploymentData(named, {}, left=left)
            sight = _Sight(version, sight.at, fresh or {})
            self._sights[key] = sight
        return DeploymentData(named, verdicts, None, sight.fresh or {}, left)

    def _find_verdicts(
        self, key: ObjectKey, named: tuple[Reference, ...]
    ) -> dict[str, SourceVerdict]:
        verdicts: dict[str, SourceVerdict] = {}
        for one in named:
            verdict = self.verdicts.find(_key_of(key, one))
            if verdict is not None:
                verdicts[one.token] = verdict
        return verdicts

    async def _read_versions(
        self, key: ObjectKey, named: tuple[Reference, ...]
    ) -> dict[str, str] | None:
        """Versions by token, of objects that exist; None where one could not be read."""
        slots = asyncio.Semaphore(MOST_READS_AT_ONCE)

        async def read(one: Reference) -> tuple[str, str | None]:
            async with slots:
                try:
                    existing = await self._reads.get(_key_of(key, one))
                except ForbiddenError:
                    return one.token, NOT_DELIVERED
                except ReconcileError:
                    return one.token, None
            if isinstance(existing, Absent):
                return one.token, NOT_DELIVERED
            return one.token, derive_version(existing.metadata)

        read_versions = await asyncio.gather(*(read(one) for one in named))
        versions = {token: version for token, version in read_versions if version}
        return None if any(version is None for _, version in read_versions) else versions

    # --- memory ---------------------------------------------------------------------------------

    def _note_error(self, key: ObjectKey, expectation: DataExpectation) -> None:
        error = expectation.error
        if error is not None:
            self._errors[key] = error.reason
        elif not expectation.is_kept:
            self._errors.pop(key, None)

    def count_errors(self) -> Counter[str]:
        """Deployments by the reason that keeps their data from the cells."""
        return Counter(self._errors.values())

    def drop(self, key: ObjectKey) -> None:
        self._sights.pop(key, None)
        self._errors.pop(key, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        self.verdicts.forget(is_gone)
        for key in [key for key in (*self._sights, *self._errors) if is_gone(key)]:
            self.drop(key)


def _key_of(deployment: ObjectKey, one: Reference) -> ObjectKey:
    return ObjectKey(deployment.plane, KIND_BY_NAME[one.kind], deployment.namespace, one.name)


def _read_recorded(caches: Caches, hub_name: str, entry: CachedObject) -> dict[str, str] | None:
    """The annotations of the copy, if it has the present generation and template."""
    copy = caches.lister(HUB, DEPLOYMENT).entry(hub_name, entry.key.name) if hub_name else None
    if copy is None or copy.metadata.is_deleting:
        return None
    annotations = copy.metadata.annotations
    if annotations.get(labels.PROJECT_GENERATION) != str(entry.metadata.generation):
        return None
    names = labels.REFERENCED_DATA_ANNOTATIONS
    return {name: annotations[name] for name in names if name in annotations}
