"""Whether tools were ever told that something is done before it was, or failed when it was not.

Looked at in every version of a user's objects, from birth to deletion, with the algorithm such
tools use (`e2e.kstatus`). What is so is derived from the cells alone: an Instance is done once its
provider runs it and no gate holds it; a deployment, once its city has as many of its present
template as it asks for; a Workload, once all of its cities have. That it was so at one moment since
the generation was written is enough: what is read in a project comes later, never earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import orjson

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_sim_planes.history import Commit, History
from compute_sim_planes.oracles import Violation
from e2e.faults.layout import Layout
from e2e.faults.state import Spot, spot_of
from e2e.kstatus import Verdict, derive_kstatus, is_wait_over
from e2e.objects import (
    annotations_of,
    condition_of,
    gates_of,
    generation_of,
    is_deleting,
    labels_of,
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
    uid_of,
)

KINDS = ("Workload", "WorkloadDeployment", "Instance")


def early_verdicts(history: History, layout: Layout) -> list[Violation]:
    """Every version that says too much."""
    truth = _Truth()
    found: list[Violation] = []
    for commit in history.of(Commit):
        spot = spot_of(commit)
        after: JsonObject = orjson.loads(commit.after or b"{}")
        side = layout.side_of(commit.plane)
        if side == "cell" and commit.kind == "Instance":
            truth.note_cell(spot, after)
        elif side == "project" and commit.kind == "Namespace" and after:
            truth.note_namespace(spot, after)
        elif side == "project" and commit.kind in KINDS:
            truth.note_wish(spot, after)
            found += [
                Violation("kstatus", commit.at, f"{spot}: {why}")
                for why in _judge(spot, after, truth)
            ]
    return found


def _judge(spot: Spot, after: JsonObject, truth: _Truth) -> Iterator[str]:
    if not after:
        return
    verdict, is_done = derive_kstatus(after), truth.is_done(spot, after)
    if verdict is Verdict.FAILED:
        yield "reads Failed, and nothing here is beyond healing"
    if verdict is Verdict.CURRENT and not is_done:
        yield f"reads Current at generation {generation_of(after)}, too early"
    if is_wait_over(after, "Ready") and not is_done and not is_deleting(after):
        yield "`kubectl wait --for=condition=Ready` is over too early"
    if is_wait_over(after, "Available") and not truth.has_run(spot, after):
        yield "`kubectl wait --for=condition=Available` is over too early"


@dataclass(slots=True)
class _Truth:
    """What cells hold, and which wishes they have met."""

    alive: dict[Spot, JsonObject] = field(default_factory=dict[Spot, JsonObject])
    ran: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])  # by UID, once it ran
    hub_names: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    wishes: dict[Spot, JsonObject] = field(default_factory=dict[Spot, JsonObject])
    met: dict[Spot, int] = field(default_factory=dict[Spot, int])  # the generation that was

    def note_namespace(self, spot: Spot, after: JsonObject) -> None:
        self.hub_names[(spot.plane, spot.name)] = f"ns-{uid_of(after)}"

    def note_cell(self, spot: Spot, after: JsonObject) -> None:
        if after and not is_deleting(after):
            self.alive[spot] = after
        else:
            self.alive.pop(spot, None)
        if after and _runs(after):
            self.ran[uid_of(after)] = after
        for wish in self.wishes:
            self._look(wish)

    def note_wish(self, spot: Spot, after: JsonObject) -> None:
        if spot.kind == "Instance":
            return
        if after:
            self.wishes[spot] = after
            self._look(spot)
        else:
            self.wishes.pop(spot, None)
            self.met.pop(spot, None)

    def _look(self, spot: Spot) -> None:
        wish = self.wishes[spot]
        namespace = self.hub_names.get((spot.plane, spot.namespace), "")
        own = [one for at, one in self.alive.items() if at.namespace == namespace]
        if all(_is_met(place, wish, own) for place in _places(spot, wish)):
            self.met[spot] = generation_of(wish)

    def is_done(self, spot: Spot, after: JsonObject) -> bool:
        if spot.kind == "Instance":
            return text_at(annotations_of(after), labels.INSTANCE_UID) in self.ran
        return self.met.get(spot, 0) == generation_of(after)

    def has_run(self, spot: Spot, after: JsonObject) -> bool:
        """Whether any Instance behind the object ever did."""
        if spot.kind == "Instance":
            return self.is_done(spot, after)
        names = {place.deployment for place in _places(spot, after)}
        namespace = self.hub_names.get((spot.plane, spot.namespace), "")
        return any(
            (
                text_at(one, "metadata", "namespace") == namespace
                and text_at(labels_of(one), labels.WORKLOAD_DEPLOYMENT_NAME) in names
            )
            or (
                spot.kind == "Workload"
                and text_at(labels_of(one), labels.WORKLOAD_NAME) == spot.name
            )
            for one in self.ran.values()
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """A city that is to run so many; `deployment` by name, where it is known."""

    city: str
    placement: str
    replicas: int
    deployment: str = ""


def _places(spot: Spot, wish: JsonObject) -> Iterable[_Place]:
    spec = object_at(wish, "spec")
    if spot.kind == "WorkloadDeployment":
        count = number_at(spec, "scaleSettings", "minReplicas")
        yield _Place(text_at(spec, "cityCode"), text_at(spec, "placementName"), count, spot.name)
        return
    for placement in objects_at(spec, "placements"):
        count = number_at(placement, "scaleSettings", "minReplicas")
        for city in texts_at(placement, "cityCodes"):
            yield _Place(city, text_at(placement, "name"), count)


def _is_met(place: _Place, wish: JsonObject, alive: Iterable[JsonObject]) -> bool:
    """Whether the city runs exactly what is asked for."""
    template = object_at(wish, "spec", "template")
    own = [one for one in alive if _is_of(one, place, wish)]
    return len(own) == place.replicas and all(
        _runs(one) and _looks_like(one, template) for one in own
    )


def _is_of(instance: JsonObject, place: _Place, wish: JsonObject) -> bool:
    said = labels_of(instance)
    if place.deployment:
        return said.get(labels.WORKLOAD_DEPLOYMENT_NAME) == place.deployment
    return (said.get(labels.WORKLOAD_NAME), said.get(labels.PLACEMENT_NAME)) == (
        text_at(wish, "metadata", "name"),
        place.placement,
    ) and said.get(labels.CITY_CODE) == place.city


def _runs(instance: JsonObject) -> bool:
    """The provider's own word, and no gate."""
    return not gates_of(instance) and condition_of(instance, "Available").status == "True"


def _looks_like(instance: JsonObject, template: JsonObject) -> bool:
    restarts = (text_at(annotations_of(one), labels.RESTARTED_AT) for one in (instance, template))
    images = (
        [text_at(one, "image") for one in objects_at(spec, "runtime", "sandbox", "containers")]
        for spec in (object_at(instance, "spec"), object_at(template, "spec"))
    )
    return len(set(restarts)) == 1 and len({tuple(one) for one in images}) == 1
