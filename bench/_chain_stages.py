"""When a Workload reached each stage of the chain, read from the versions that planes told. Pure.

```
create ─► project WD ─► hub WD ═Karmada═► cell WD ─► Instance ─► claim ═quota═► grant ─► ungated
                                                        ─► hub copy Ready ─► projection Ready
```

Double lines are others' time: what is left of the whole is ours and the planes'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson

from compute_api_types.wire import JsonObject
from e2e.backends.real.recording import Recorded
from e2e.objects import condition_of, gates_of


@dataclass(frozen=True, slots=True)
class Sight:
    """What marks a stage: the first version of an object on a plane of which something is so."""

    stage: str
    plane: str
    kind: str
    suffix: str  # of the object's name, after that of the Workload
    is_so: Callable[[JsonObject], bool]


def _is_there(found: JsonObject) -> bool:
    del found
    return True


def _is_ungated(found: JsonObject) -> bool:
    return gates_of(found) == []


def _says(condition: str) -> Callable[[JsonObject], bool]:
    return lambda found: condition_of(found, condition).status == "True"


def sights_of(project: str, hub: str, cell: str, city: str) -> tuple[Sight, ...]:
    """The stages of one city and one replica, in their order."""
    deployment, instance = f"-default-{city.lower()}", f"-default-{city.lower()}-0"
    return (
        Sight("project WD", project, "WorkloadDeployment", deployment, _is_there),
        Sight("hub WD", hub, "WorkloadDeployment", deployment, _is_there),
        Sight("cell WD", cell, "WorkloadDeployment", deployment, _is_there),
        Sight("cell Instance", cell, "Instance", instance, _is_there),
        Sight("claim", project, "ResourceClaim", instance, _is_there),
        Sight("grant", project, "ResourceClaim", instance, _says("Granted")),
        Sight("ungated", cell, "Instance", instance, _is_ungated),
        Sight("hub copy", hub, "Instance", instance, _says("Ready")),
        Sight("projection", project, "Instance", instance, _says("Ready")),
        Sight("Workload Available", project, "Workload", "", _says("Available")),
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
    """Moments of many Workloads, from versions as they come; each version is looked at once."""

    def __init__(self, sights: Sequence[Sight]) -> None:
        self._sights = sights
        self._moments: dict[str, dict[str, datetime]] = {}

    def look(self, records: Iterable[Recorded]) -> None:
        for record in records:
            for sight in self._sights:
                if record.after and (record.plane, record.kind.name) == (sight.plane, sight.kind):
                    self._look(record, sight)

    def of(self, workload: str) -> dict[str, datetime]:
        """When each stage was first seen; a stage that was never seen is missing."""
        return self._moments.get(workload, {})

    def _look(self, record: Recorded, sight: Sight) -> None:
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
    """One Workload from its create on, in seconds."""

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
