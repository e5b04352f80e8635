"""Oracle: kstatus never reads an object as Current too early, nor as Failed at all.

Every version of a user's objects is evaluated with the algorithm of deployment tools
(`e2e.world.kstatus`); an early Current lets a pipeline continue before the Workload runs. The truth
comes from the cells: an Instance is done when its provider runs it without gates, a deployment when
its city runs the desired number from the current template, a Workload when all its cities do. It is
enough that this held once since the generation was written, as a project shows it later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import orjson

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_sim_planes.history import Commit, History
from compute_sim_planes.oracles.invariants import Violation
from e2e.oracles.layout import Layout
from e2e.oracles.state import ObjectLocation, location_of
from e2e.world.kstatus import KStatus, derive_kstatus, is_wait_over
from e2e.world.objects import (
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


def premature_statuses(history: History, layout: Layout) -> list[Violation]:
    """Every version that kstatus reads as done too early, or as failed."""
    truth = _Truth()
    violations: list[Violation] = []
    for commit in history.of(Commit):
        location = location_of(commit)
        after: JsonObject = orjson.loads(commit.after or b"{}")
        side = layout.side_of(commit.plane)
        if side == "cell" and commit.kind == "Instance":
            truth.note_cell(location, after)
        elif side == "project" and commit.kind == "Namespace" and after:
            truth.note_namespace(location, after)
        elif side == "project" and commit.kind in KINDS:
            truth.note_desired(location, after)
            violations += [
                Violation("kstatus", commit.at, f"{location}: {why}")
                for why in _too_early(location, after, truth)
            ]
    return violations


def _too_early(location: ObjectLocation, after: JsonObject, truth: _Truth) -> Iterator[str]:
    if not after:
        return
    verdict, is_done = derive_kstatus(after), truth.is_done(location, after)
    if verdict is KStatus.FAILED:
        yield "reads Failed, and nothing here is beyond healing"
    if verdict is KStatus.CURRENT and not is_done:
        yield f"reads Current at generation {generation_of(after)}, too early"
    if is_wait_over(after, "Ready") and not is_done and not is_deleting(after):
        yield "`kubectl wait --for=condition=Ready` is over too early"
    if is_wait_over(after, "Available") and not truth.has_run(location, after):
        yield "`kubectl wait --for=condition=Available` is over too early"


@dataclass(slots=True)
class _Truth:
    """The Instances of all cells, and which desired objects they satisfied."""

    alive: dict[ObjectLocation, JsonObject] = field(
        default_factory=dict[ObjectLocation, JsonObject]
    )
    ran: dict[str, JsonObject] = field(
        default_factory=dict[str, JsonObject]
    )  # by UID, after they ran
    hub_names: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    desired: dict[ObjectLocation, JsonObject] = field(
        default_factory=dict[ObjectLocation, JsonObject]
    )
    met: dict[ObjectLocation, int] = field(
        default_factory=dict[ObjectLocation, int]
    )  # the satisfied generation

    def note_namespace(self, location: ObjectLocation, after: JsonObject) -> None:
        self.hub_names[(location.plane, location.name)] = f"ns-{uid_of(after)}"

    def note_cell(self, location: ObjectLocation, after: JsonObject) -> None:
        if after and not is_deleting(after):
            self.alive[location] = after
        else:
            self.alive.pop(location, None)
        if after and _runs(after):
            self.ran[uid_of(after)] = after
        for desired_object in self.desired:
            self._evaluate(desired_object)

    def note_desired(self, location: ObjectLocation, after: JsonObject) -> None:
        if location.kind == "Instance":
            return
        if after:
            self.desired[location] = after
            self._evaluate(location)
        else:
            self.desired.pop(location, None)
            self.met.pop(location, None)

    def _evaluate(self, location: ObjectLocation) -> None:
        desired_object = self.desired[location]
        namespace = self.hub_names.get((location.plane, location.namespace), "")
        own = [one for at, one in self.alive.items() if at.namespace == namespace]
        if all(
            _is_met(target, desired_object, own) for target in _places(location, desired_object)
        ):
            self.met[location] = generation_of(desired_object)

    def is_done(self, location: ObjectLocation, after: JsonObject) -> bool:
        if location.kind == "Instance":
            return text_at(annotations_of(after), labels.INSTANCE_UID) in self.ran
        return self.met.get(location, 0) == generation_of(after)

    def has_run(self, location: ObjectLocation, after: JsonObject) -> bool:
        """Whether any Instance of the object ever ran."""
        if location.kind == "Instance":
            return self.is_done(location, after)
        names = {target.deployment for target in _places(location, after)}
        namespace = self.hub_names.get((location.plane, location.namespace), "")
        return any(
            (
                text_at(one, "metadata", "namespace") == namespace
                and text_at(labels_of(one), labels.WORKLOAD_DEPLOYMENT_NAME) in names
            )
            or (
                location.kind == "Workload"
                and text_at(labels_of(one), labels.WORKLOAD_NAME) == location.name
            )
            for one in self.ran.values()
        )


@dataclass(frozen=True, slots=True)
class _CityTarget:
    """Desired replicas in one city; `deployment` is its name, if known."""

    city: str
    placement: str
    replicas: int
    deployment: str = ""


def _places(location: ObjectLocation, desired_object: JsonObject) -> Iterable[_CityTarget]:
    spec = object_at(desired_object, "spec")
    if location.kind == "WorkloadDeployment":
        count = number_at(spec, "scaleSettings", "minReplicas")
        yield _CityTarget(
            text_at(spec, "cityCode"), text_at(spec, "placementName"), count, location.name
        )
        return
    for placement in objects_at(spec, "placements"):
        count = number_at(placement, "scaleSettings", "minReplicas")
        for city in texts_at(placement, "cityCodes"):
            yield _CityTarget(city, text_at(placement, "name"), count)


def _is_met(target: _CityTarget, desired_object: JsonObject, alive: Iterable[JsonObject]) -> bool:
    """Whether the city runs exactly the desired Instances."""
    template = object_at(desired_object, "spec", "template")
    own = [one for one in alive if _is_of(one, target, desired_object)]
    return len(own) == target.replicas and all(
        _runs(one) and _matches_template(one, template) for one in own
    )


def _is_of(instance: JsonObject, target: _CityTarget, desired_object: JsonObject) -> bool:
    instance_labels = labels_of(instance)
    if target.deployment:
        return instance_labels.get(labels.WORKLOAD_DEPLOYMENT_NAME) == target.deployment
    return (
        instance_labels.get(labels.WORKLOAD_NAME),
        instance_labels.get(labels.PLACEMENT_NAME),
    ) == (
        text_at(desired_object, "metadata", "name"),
        target.placement,
    ) and instance_labels.get(labels.CITY_CODE) == target.city


def _runs(instance: JsonObject) -> bool:
    """Whether the provider reports it Available and it has no gates."""
    return not gates_of(instance) and condition_of(instance, "Available").status == "True"


def _matches_template(instance: JsonObject, template: JsonObject) -> bool:
    restarts = (text_at(annotations_of(one), labels.RESTARTED_AT) for one in (instance, template))
    images = (
        [text_at(one, "image") for one in objects_at(spec, "runtime", "sandbox", "containers")]
        for spec in (object_at(instance, "spec"), object_at(template, "spec"))
    )
    return len(set(restarts)) == 1 and len({tuple(one) for one in images}) == 1
