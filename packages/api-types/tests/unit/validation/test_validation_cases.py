"""The acceptance cases of api.md 13, one test per number, and the check that none is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from compute_api_types.labels import (
    PARENT_NAME_EXTRA,
    PARENT_TYPE_EXTRA,
    RESTARTED_AT,
    UPSTREAM_NAMESPACE,
    WORKLOAD_UID,
)
from compute_api_types.validation import (
    NETWORKING_OFF,
    NO_PROJECT,
    UNREAD,
    CannotDecide,
    Facts,
    Json,
    Review,
    needs_locations,
    networks_to_review,
    parse_project,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compute_api_types.validation import Document

SPEC: Final = Path(__file__).parents[5] / "docs" / "spec" / "api.md"

ALLOWED: Final = {"default": Review.ALLOWED}
DENIED: Final = {"default": Review.DENIED, "other": Review.DENIED}
DFW: Final = Facts("acme", frozenset({"DFW"}), ALLOWED)
DFW_AND_LHR: Final = Facts("acme", frozenset({"DFW", "LHR"}), ALLOWED)
BOTH_SPELLINGS: Final = Facts("acme", frozenset({"DFW", "dfw"}), ALLOWED)
NOTHING_READ: Final = Facts("acme", UNREAD, {})
REVIEW_DENIED: Final = Facts("acme", frozenset({"DFW"}), DENIED)
NOT_AVAILABLE: Final = CannotDecide(
    'project "acme" is not available for admission yet, try again', 500
)

MAX_TWO: Final = {"P[0].scaleSettings.maxReplicas": 2}
CPU: Final = "M[0].resource"


def a_metric(**target: int) -> dict[str, Json]:
    return {**MAX_TWO, "M": [{"resource": {"name": "cpu", "target": target}}]}


def a_disk(name: str, size: str | None, **populator: Json) -> Json:
    spec: dict[str, Json] = {"type": "pd-standard"}
    if size is not None:
        spec["resources"] = {"requests": {"storage": size}}
    if populator:
        spec["populator"] = populator
    return {"name": name, "disk": {"template": {"spec": spec}}}


def a_placement(name: str, *cities: str) -> Json:
    return {"name": name, "cityCodes": cities, "scaleSettings": {"minReplicas": 1}}


EXT4: Final = {"type": "ext4"}
IMAGE: Final = {"name": "datumcloud/ubuntu-2204-lts"}
SSH_KEYS: Final = "T.metadata.annotations[compute.datumapis.com/ssh-keys]"
BAD_NAME: Final = "Not valid and also a duplicate"


def second_disk(size: str) -> dict[str, Json]:
    return {
        "S.volumes[1]": a_disk("data", size),
        "S.runtime.virtualMachine.volumeAttachments[1]": {"name": "data"},
    }


@dataclass(frozen=True)
class Case:
    """A fixture with changes, what is known of the world, and the errors in order."""

    start: str
    changes: Mapping[str, Json]
    expected: tuple[str, ...] | CannotDecide = ()
    facts: Facts = DFW
    # Changes that make the stored object of an update; None is a create.
    stored: Mapping[str, Json] | None = None
    reads_nothing: bool = field(default=False)


CASES: Final[Mapping[int, tuple[Case, ...]]] = {
    1: (
        Case(
            "empty",
            {},
            (
                "NotSupported S.runtime.resources",
                "Required S.runtime",
                "Required S.networkInterfaces",
                "Required spec.placements",
            ),
        ),
    ),
    2: (Case("sandbox", {"P[0].cityCodes": []}, ("Required P[0].cityCodes",)),),
    3: (Case("sandbox", {"P[0].cityCodes": ["TEST"]}, ("NotSupported P[0].cityCodes[0]",)),),
    4: (Case("sandbox", {"P[0].name": ""}, ("Required P[0].name",)),),
    5: (Case("sandbox", {"P[0].name": "#@$@#$@"}, ("Invalid P[0].name",)),),
    6: (
        Case(
            "sandbox",
            {"P[0].scaleSettings.minReplicas": -1},
            ("Invalid P[0].scaleSettings.minReplicas",),
        ),
    ),
    7: (
        Case(
            "sandbox",
            {"P[0].scaleSettings.minReplicas": 9999},
            ("Invalid P[0].scaleSettings.minReplicas",),
        ),
    ),
    8: (Case("sandbox", MAX_TWO, ("Required M",)),),
    9: (Case("sandbox", {**MAX_TWO, "M": [{}]}, ("Required M[0].resource",)),),
    10: (
        Case(
            "sandbox",
            {**MAX_TWO, "M": [{"resource": {"name": "invalid"}}]},
            ("NotSupported M[0].resource.name", "Required M[0].resource.target"),
        ),
    ),
    11: (
        Case(
            "sandbox",
            a_metric(value=50, averageValue=50, averageUtilization=50),
            (
                "Forbidden M[0].resource.target.value",
                "Forbidden M[0].resource.target.averageUtilization",
            ),
        ),
    ),
    12: (Case("sandbox", a_metric(value=-1), (f"Forbidden {CPU}.target.value",)),),
    13: (Case("sandbox", a_metric(averageValue=-1), (f"Invalid {CPU}.target.averageValue",)),),
    14: (
        Case(
            "sandbox",
            a_metric(averageUtilization=0),
            (f"Invalid {CPU}.target.averageUtilization",),
        ),
    ),
    15: (
        Case(
            "vm",
            {
                "S.volumes": None,
                "S.runtime.virtualMachine": {},
                "S.runtime.sandbox.containers": [{"name": "c", "image": "registry.tld/i"}],
            },
            ("Forbidden S.runtime.virtualMachine",),
        ),
    ),
    16: (Case("vm", {SSH_KEYS: None}, ("Required K",)),),
    17: (Case("vm", {SSH_KEYS: "invalid"}, ("Invalid K[0]",)),),
    18: (Case("vm", {SSH_KEYS: ":invalid"}, ("Required K[0]", "Invalid K[0]")),),
    19: (Case("vm", {}),),
    20: (
        Case(
            "vm",
            {"S.volumes[0]": a_disk("boot", "10Gi", filesystem=EXT4)},
            ("Required S.runtime.virtualMachine.volumeAttachments[0].name",),
        ),
    ),
    21: (Case("vm", {"S.volumes[0]": a_disk("boot", "10Gi", image=IMAGE)}, ("Invalid B(0)",)),),
    22: (Case("vm", second_disk("1Gi"), ("Invalid B(1)",)),),
    23: (Case("vm", second_disk("1Pi"), ("Invalid B(1)",)),),
    24: (Case("vm", second_disk("10.5Gi"), ("Invalid B(1)",)),),
    25: (
        Case(
            "sandbox",
            {"S.volumes": [a_disk(BAD_NAME, "10Gi"), a_disk(BAD_NAME, "10Gi")]},
            (
                "Invalid S.volumes[0].name",
                "Required S.volumes[0].name",
                "Invalid S.volumes[1].name",
                "Duplicate S.volumes[1].name",
            ),
        ),
    ),
    26: (
        Case(
            "sandbox",
            {
                "S.volumes": [a_disk("data", "10Gi", filesystem=EXT4)],
                "C.volumeAttachments": [
                    {"name": "data", "mountPath": "/mount1"},
                    {"name": "data", "mountPath": "/mount1"},
                    {"name": "unknown"},
                ],
            },
            ("Duplicate C.volumeAttachments[1].mountPath", "NotFound C.volumeAttachments[2].name"),
        ),
    ),
    27: (
        Case(
            "sandbox",
            {"C.ports": [{}, {"name": "must-be-shorter-than-15-characters", "port": 80}]},
            ("Required C.ports[0].name", "Invalid C.ports[0].port", "Invalid C.ports[1].name"),
        ),
    ),
    28: (Case("sandbox", {}, ("Forbidden S.networkInterfaces[0].network",), REVIEW_DENIED),),
    29: (
        Case(
            "sandbox",
            {},
            ("InternalError S.networkInterfaces[0].network",),
            Facts("acme", frozenset({"DFW"}), {"default": Review.FAILED}),
        ),
    ),
    30: (
        Case(
            "sandbox",
            {"P": [a_placement("a", "DFW"), a_placement("a", "LHR")]},
            ("Duplicate P[1].name",),
            DFW_AND_LHR,
        ),
    ),
    31: (Case("sandbox", {"P[0].cityCodes": ["DFW", "DFW"]}, ("Duplicate P[0].cityCodes[1]",)),),
    32: (
        Case(
            "sandbox",
            {"P": [a_placement("a", "DFW"), a_placement("b", "dfw")]},
            ("Duplicate P[1].cityCodes[0]",),
            BOTH_SPELLINGS,
        ),
    ),
    33: (
        Case(
            "sandbox",
            {"P": [a_placement("a", "DFW"), a_placement("b", "dfw")]},
            ("NotSupported P[1].cityCodes[0]", "Duplicate P[1].cityCodes[0]"),
        ),
    ),
    34: (
        Case(
            "sandbox",
            {
                **a_metric(averageValue=50),
                "P[0].scaleSettings.minReplicas": 2,
                "P[0].scaleSettings.maxReplicas": 1,
            },
            ("Invalid P[0].scaleSettings.maxReplicas",),
        ),
    ),
    35: (
        Case(
            "sandbox",
            {"P[0].scaleSettings.minReplicas": 2, "P[0].scaleSettings.maxReplicas": 1},
            ("Invalid P[0].scaleSettings.maxReplicas", "Required M"),
        ),
    ),
    36: (
        Case(
            "sandbox",
            {"S.location": {"name": "l", "namespace": ""}, "S.controller": {"templateHash": "h"}},
            ("Forbidden S.location", "Forbidden S.controller"),
        ),
    ),
    37: (
        Case(
            "sandbox",
            {
                f"T.metadata.labels[{WORKLOAD_UID}]": "x",
                f"T.metadata.annotations[{UPSTREAM_NAMESPACE}]": "x",
            },
            (
                f"Forbidden T.metadata.labels[{WORKLOAD_UID}]",
                f"Forbidden T.metadata.annotations[{UPSTREAM_NAMESPACE}]",
            ),
        ),
    ),
    38: (Case("vm", {f"T.metadata.annotations[{RESTARTED_AT}]": "2026-06-20T09:00:00Z"}),),
    39: (Case("sandbox", {"metadata.name": "a" * 253}),),
    40: (
        Case(
            "sandbox",
            {"P[0].scaleSettings.instanceManagementPolicy": "Parallel"},
            ("NotSupported P[0].scaleSettings.instanceManagementPolicy",),
        ),
    ),
    41: (
        Case(
            "sandbox",
            {"S.networkInterfaces[0].network.namespace": "other"},
            ("Forbidden S.networkInterfaces[0].network.namespace",),
        ),
    ),
    42: (
        Case(
            "sandbox",
            {"C.image": "registry.tld/image:new", "P[0].cityCodes": ["GONE"]},
            stored={"P[0].cityCodes": ["GONE"]},
        ),
    ),
    43: (
        Case(
            "sandbox",
            {"C.image": "registry.tld/image:new", "P[0].cityCodes": ["GONE", "NEVER"]},
            ("NotSupported P[0].cityCodes[1]",),
            stored={"P[0].cityCodes": ["GONE"]},
        ),
    ),
    44: (
        Case(
            "sandbox",
            {"P": [a_placement("new", "LHR"), a_placement("Not Legal", "GONE")]},
            facts=DFW_AND_LHR,
            stored={"P": [a_placement("Not Legal", "GONE")]},
        ),
    ),
    45: (
        Case(
            "sandbox",
            {"P": [a_placement("a", "DFW"), a_placement("a", "LHR"), a_placement("a", "AMS")]},
            ("Duplicate P[2].name",),
            facts=Facts("acme", frozenset({"DFW", "LHR", "AMS"}), ALLOWED),
            stored={"P": [a_placement("a", "DFW"), a_placement("a", "LHR")]},
        ),
    ),
    46: (
        Case(
            "sandbox",
            {"P[0].scaleSettings.minReplicas": 0},
            ("Invalid P[0].scaleSettings.minReplicas",),
            stored={},
        ),
    ),
    47: (
        Case(
            "sandbox",
            {"P": [], "metadata.labels": {"app": "web"}},
            facts=NOTHING_READ,
            stored={"P": []},
            reads_nothing=True,
        ),
    ),
    48: (
        Case(
            "sandbox",
            {"P": [a_placement("", "NEW")], "metadata.deletionTimestamp": "2026-06-20T09:00:00Z"},
            facts=NOTHING_READ,
            stored={},
            reads_nothing=True,
        ),
    ),
    49: (
        Case(
            "sandbox",
            {"P[0].scaleSettings.minReplicas": 3},
            facts=REVIEW_DENIED,
            stored={},
        ),
    ),
    50: (
        Case(
            "sandbox",
            {"S.networkInterfaces[0].network.name": "other"},
            ("Forbidden S.networkInterfaces[0].network",),
            facts=REVIEW_DENIED,
            stored={},
        ),
    ),
    51: (
        Case("sandbox", {}, NOT_AVAILABLE, NOTHING_READ),
        Case("sandbox", {"P[0].cityCodes[1]": "LHR"}, NOT_AVAILABLE, NOTHING_READ, stored={}),
        Case("sandbox", {"P[0].scaleSettings.minReplicas": 3}, (), NOTHING_READ, stored={}),
    ),
    53: (
        Case(
            "sandbox",
            {"P[0].cityCodes": ["ANYWHERE"]},
            facts=Facts("acme", NETWORKING_OFF, NETWORKING_OFF),
        ),
    ),
}

UNCLEAR_EXTRAS: Final[Mapping[int, tuple[Document, ...]]] = {
    52: (
        {},
        {PARENT_NAME_EXTRA: []},
        {PARENT_NAME_EXTRA: [""]},
        {PARENT_NAME_EXTRA: ["acme", "other"]},
        {PARENT_NAME_EXTRA: ["Not A Label"]},
        {PARENT_NAME_EXTRA: "acme"},
        {PARENT_NAME_EXTRA: [7]},
        {PARENT_NAME_EXTRA: ["acme"], PARENT_TYPE_EXTRA: ["Organization"]},
        {PARENT_NAME_EXTRA: ["acme"], PARENT_TYPE_EXTRA: []},
        {PARENT_NAME_EXTRA: ["acme"], PARENT_TYPE_EXTRA: ["Project", "Organization"]},
    )
}


@pytest.mark.parametrize(
    "cases", [pytest.param(cases, id=f"case-{number:02}") for number, cases in CASES.items()]
)
def test_the_errors_of_the_case_come_in_order(
    cases: tuple[Case, ...],
    build: Callable[[str, Mapping[str, Json]], Document],
    judge: Callable[[Document, Document | None, Facts], list[str] | CannotDecide],
    spell: Callable[[tuple[str, ...]], list[str]],
) -> None:
    for case in cases:
        wanted = build(case.start, case.changes)
        stored = None if case.stored is None else build(case.start, case.stored)
        expected = case.expected
        assert judge(wanted, stored, case.facts) == (
            expected if isinstance(expected, CannotDecide) else spell(expected)
        )
        if case.reads_nothing:
            assert not needs_locations(wanted, stored)
            assert networks_to_review(wanted, stored) == ()


@pytest.mark.parametrize(
    "extras",
    [pytest.param(extras, id=f"case-{number:02}") for number, extras in UNCLEAR_EXTRAS.items()],
)
def test_a_request_that_names_no_project_is_not_decided(extras: tuple[Document, ...]) -> None:
    assert [parse_project(extra) for extra in extras] == [NO_PROJECT] * len(extras)
    assert (
        CannotDecide(
            "the request names no project: user extra iam.miloapis.com/parent-name is required", 500
        )
        == NO_PROJECT
    )


def test_a_request_names_its_project_with_or_without_the_kind() -> None:
    assert parse_project({PARENT_NAME_EXTRA: ["acme"]}) == "acme"
    assert parse_project({PARENT_NAME_EXTRA: ["acme"], PARENT_TYPE_EXTRA: ["Project"]}) == "acme"


def test_every_case_of_the_specification_has_a_test() -> None:
    section = SPEC.read_text("utf-8").partition("\n## 13. ")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([0-9, ]+) \|", section, re.MULTILINE)
    numbers = [int(number) for row in rows for number in row.split(",")]
    assert sorted(numbers) == sorted([*CASES, *UNCLEAR_EXTRAS])
    assert len(numbers) == 53
