"""The times at which a Workload reached each stage of the chain, from recorded versions. Pure.

```
create ─► project WD ─► hub WD ═Karmada═► cell WD ─► Instance ─► claim ═quota═► grant ─► ungated
                                                        ─► hub copy Ready ─► projection Ready
```

Double lines are time of Karmada and Milo; the rest is that of operators and API servers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson

from compute_api_types.wire import JsonObject
from e2e.backends.real.recording import RecordedVersion
from e2e.world.objects import condition_of, gates_of


@dataclass(frozen=True, slots=True)
class Sight:
    """A stage: the first version of an object on a plane for which `is_so` holds."""

    stage: str
    plane: str
    kind: str
    suffix: str  # of the object's name, after the Workload's
    is_so: Callable[[JsonObject], bool]


def _is_there(document: JsonObject) -> bool:
    del document
    return True


def _is_ungated(document: JsonObject) -> bool:
    return gates_of(document) == []


def _has_condition(condition: str) -> Callable[[JsonObject], bool]:
    return lambda document: condition_of(document, condition).status == "True"


def sights_of(project: str, hub: str, cell: str, city: str) -> tuple[Sight, ...]:
    """The stages of one city and one replica, in order."""
    deployment, instance = f"-default-{city.lower()}", f"-default-{city.lower()}-0"
    return (
        Sight("project WD", project, "WorkloadDeployment", deployment, _is_there),
        Sight("hub WD", hub, "WorkloadDeployment", deployment, _is_there),
        Sight("cell WD", cell, "WorkloadDeployment", deployment, _is_there),
        Sight("cell Instance", cell, "Instance", instance, _is_there),
        Sight("claim", project, "ResourceClaim", instance, _is_there),
        Sight("grant", project, "ResourceClaim", instance, _has_condition("Granted")),
        Sight("ungated", cell, "Instance", instance, _is_ungated),
        Sight("hub copy", hub, "Instance", instance, _has_condition("Ready")),
        Sight("projection", project, "Instance", instance, _has_condition("Ready")),
        Sight("Workload Available", project, "Workload", "", _has_condition("Available")),
    )


STAGES: Final = (
    "project WD",
    "hub WD",
    "cell WD",
    "cell Instance",
    "ungated",
    "hub copy",
    "projection",
    "Workload Available",
)


class Sightings:
    """Stage times of many Workloads; each version is read once."""

    def __init__(self, sights: Sequence[Sight]) -> None:
        self._sights = sights
        self._moments: dict[str, dict[str, datetime]] = {}

    def read(self, records: Iterable[RecordedVersion]) -> None:
        for record in records:
            for sight in self._sights:
                if record.after and (record.plane, record.kind.name) == (sight.plane, sight.kind):
                    self._read(record, sight)

    def of(self, workload: str) -> dict[str, datetime]:
        """The time of each stage that was reached."""
        return self._moments.get(workload, {})

    def _read(self, record: RecordedVersion, sight: Sight) -> None:
        name = record.key.rpartition("/")[2]
        if sight.kind == "ResourceClaim":
            name = name.removeprefix("instance-")
        if not name.endswith(sight.suffix):
            return
        moments = self._moments.setdefault(name.removesuffix(sight.suffix), {})
        if sight.stage not in moments and sight.is_so(orjson.loads(record.after)):
            moments[sight.stage] = record.at


@dataclass(frozen=True, slots=True)
class Journey:
    """Stage times of one Workload, relative to its creation."""

    begun: datetime
    moments: dict[str, datetime]

    def seconds_to(self, stage: str) -> float:
        return (self.moments[stage] - self.begun).total_seconds()

    @property
    def is_whole(self) -> bool:
        return all(stage in self.moments for stage in (*STAGES, "claim", "grant"))

    @property
    def karmada(self) -> float:
        return self._between("hub WD", "cell WD")

    @property
    def quota(self) -> float:
        return self._between("claim", "grant")

    @property
    def ours(self) -> float:
        return self.seconds_to("projection") - self.karmada - self.quota

    def _between(self, first: str, then: str) -> float:
        return (self.moments[then] - self.moments[first]).total_seconds()


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not exceed (nearest rank)."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]
