"""Objects as large as a server takes them: the operator judges them without standing still (F4).

What runs on the event loop in one go is measured by itself, as CPU time: reading a review, judging
it, looking at a Workload and planning for it. The simulated server is left out, since it is not
what ships.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

import pytest
from management_builders.documents import a_template_document, a_workload_document
from management_builders.reviews import a_review
from management_builders.world import Process, World, condition_of, play

from compute_api_types import labels, reasons
from compute_management_operator.admission.host.admission_review import LARGEST_REVIEW
from compute_management_operator.admission.review import (
    AdmissionAllowed,
    AdmissionRefused,
    AdmissionResult,
)
from compute_management_operator.planes import DEPLOYMENT, WORKLOAD
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    decode_json_object,
    encode,
    member_list,
    member_object,
)
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point

PROJECT: Final = "acme"
OF_PROJECT: Final[JsonObject] = {labels.PARENT_NAME_EXTRA: [PROJECT]}
LONGEST_BLOCK: Final = 0.1  # faults.md F4
MOST_COPIES: Final = 10  # a review takes 3 to 5 copies of the objects that take long
# A collection of garbage falls into one attempt, not into each.
ATTEMPTS: Final = 3
LARGEST_DENIAL: Final = 64 * 1024
# Decoded text takes several times its bytes; more than this many would be something that grows.
LARGEST_PEAK: Final = 10 * LARGEST_REVIEW


def with_env(count: int, length: int) -> JsonObject:
    template = a_template_document()
    runtime = member_object(member_object(template, "spec"), "runtime")
    container = member_list(member_object(runtime, "sandbox"), "containers")[0]
    assert isinstance(container, dict)
    env: list[Json] = [{"name": f"E{number}", "value": "x" * length} for number in range(count)]
    container["env"] = env
    return a_workload_document(template=template)


def with_placements(count: int) -> JsonObject:
    return a_workload_document(placements={f"p{number}": ("DFW",) for number in range(count)})


def nested(depth: int) -> JsonObject:
    inner: JsonObject = {}
    for _ in range(depth):
        inner = {"a": inner}
    desired = a_workload_document()
    member_object(desired, "spec")["deep"] = inner
    return desired


@dataclass(frozen=True, slots=True)
class Monster:
    """A document and what is to become of it."""

    name: str
    document: JsonObject
    verdict: type[AdmissionResult]


MONSTERS: Final = (
    Monster(
        "10,000 env entries", with_env(10_000, 1), AdmissionRefused
    ),  # more than a template may weigh
    Monster("1.5 MB", with_env(45, 32_000), AdmissionRefused),
    Monster("192 KiB", with_env(6, 32_000), AdmissionAllowed),
    # One city is placed once: 4,999 of them are duplicates, and the message is bounded.
    Monster("5,000 placements", with_placements(5_000), AdmissionRefused),
    Monster("200 deep", nested(200), AdmissionAllowed),
)


@dataclass(slots=True)
class Stopwatch:
    """CPU seconds of what ran in one go, by name."""

    blocks: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    @contextmanager
    def measuring(self, name: str) -> Generator[None]:
        begun = time.process_time()
        try:
            yield
        finally:
            self.blocks.setdefault(name, []).append(time.process_time() - begun)

    def shortest(self, name: str) -> float:
        return min(self.blocks[name])


async def _start(world: World) -> Process:
    await world.add_project(PROJECT, cities=("DFW",))
    process = world.process()
    process.start()
    await world.sleep(2)
    return process


@pytest.mark.fault("F4")
@pytest.mark.fault("S17")
@pytest.mark.parametrize("monster", MONSTERS, ids=lambda monster: monster.name)
def test_a_review_of_the_largest_objects_never_holds_up_the_loop(monster: Monster) -> None:
    async def story(world: World) -> None:
        process = await _start(world)
        raw = encode(a_review(monster.document, OF_PROJECT))
        watch = Stopwatch()
        for _ in range(ATTEMPTS):
            with watch.measuring("read"):
                review = decode_json_object(raw)
            with watch.measuring("copy"):
                deepcopy(review)
            with watch.measuring("judge"):
                verdict = await process.admit(review)
            assert isinstance(verdict, monster.verdict)
            if isinstance(verdict, AdmissionRefused):
                assert verdict.status["code"] == 422
                assert len(encode({**verdict.status})) < LARGEST_DENIAL
        # A slow machine is judged by copies of the same object; a quadratic walk takes hundreds.
        longest = max(LONGEST_BLOCK, MOST_COPIES * watch.shortest("copy"))
        assert watch.shortest("read") < longest
        assert watch.shortest("judge") < longest

    play(story)


@pytest.mark.fault("F4")
@pytest.mark.fault("S17")
@pytest.mark.parametrize("monster", MONSTERS, ids=lambda monster: monster.name)
def test_a_review_of_the_largest_objects_takes_bounded_memory(monster: Monster) -> None:
    async def story(world: World) -> None:
        process = await _start(world)
        raw = encode(a_review(monster.document, OF_PROJECT))
        tracemalloc.start()
        try:
            await process.admit(decode_json_object(raw))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < LARGEST_PEAK

    play(story)


@pytest.mark.fault("F4")
@pytest.mark.fault("S17")
@pytest.mark.parametrize(("status", "reason"), [(413, "RequestEntityTooLarge"), (422, "Invalid")])
def test_a_deployment_that_is_too_large_for_its_plane_is_recorded_once(
    status: int, reason: str
) -> None:
    at = Point(verb="create", kind=DEPLOYMENT.kind, times=0)
    refused = Fault("F4", Action.ERROR, at, Parameters(status=status, reason=reason))

    async def story(world: World) -> None:
        process = await _start(world)
        await world.create(PROJECT, a_workload_document())
        await world.sleep(240)
        assert process.reasons().count(reasons.DEPLOYMENT_REJECTED) == 1
        tried = world.writes(plane=PROJECT, kind=DEPLOYMENT.kind)
        assert 1 <= len(tried) <= 5
        existing = await world.get(PROJECT, WORKLOAD, "web")
        assert condition_of(existing, "Available")[0] == "False"

    play(story, refused, is_clean=False)
