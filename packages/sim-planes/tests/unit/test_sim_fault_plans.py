from __future__ import annotations

import json
from datetime import timedelta

import pytest

from compute_sim_planes.faults.plan_files import parse_plan, print_plan
from compute_sim_planes.faults.plans import (
    DEFAULT_FAULTS,
    Action,
    Fault,
    FaultPlan,
    FaultPlanError,
    Parameters,
    Point,
    default_fault,
)

# The example of docs/spec/faults.md 1.7, with a valid key.
EXAMPLE = """
{"schema": "compute.faults/v1", "scenario": "roll", "seed": 7, "oracles": ["O1", "O2"],
 "faults": [{"id": "A2", "at": {"plane": "hub", "verb": "create", "kind": "WorkloadDeployment",
                                "key": "ns-1/web-default-dfw", "nth": 1}}]}
"""


def test_the_example_of_the_specification_is_read() -> None:
    assert parse_plan(EXAMPLE) == FaultPlan(
        scenario="roll",
        seed=7,
        oracles=("O1", "O2"),
        faults=(
            Fault(
                "A2",
                Action.CRASH_AFTER,
                Point("hub", "create", "WorkloadDeployment", "ns-1/web-default-dfw"),
            ),
        ),
    )


def test_what_is_printed_is_one_line_and_reads_the_same() -> None:
    plan = FaultPlan(
        "scale",
        3,
        (
            default_fault("C4", Point("hub", "write", nth=2)),
            Fault("C4", Action.REFUSE, Point("cell-1", times=0, every=3)),
            Fault(
                "C3",
                Action.ERROR,
                Point("p1", "patch", "Instance", "n/a", "status", 2, 5, 1),
                Parameters(429, "TooManyRequests", timedelta(seconds=1), timedelta(seconds=9), 4),
            ),
            Fault(
                "D1",
                Action.RESET,
                Point("hub", after=timedelta(seconds=60), until=timedelta(minutes=11)),
            ),
            Fault(
                "B5", Action.STALE, Point("hub", "watch"), Parameters(delay=timedelta(seconds=0.5))
            ),
        ),
        ("O3",),
    )

    text = print_plan(plan)

    assert "\n" not in text
    assert parse_plan(text) == plan


def test_what_is_usual_is_not_printed() -> None:
    printed = json.loads(print_plan(parse_plan(EXAMPLE)))

    assert printed == json.loads(EXAMPLE)


@pytest.mark.parametrize("fault_id", sorted(DEFAULT_FAULTS))
def test_every_usual_fault_survives_the_file(fault_id: str) -> None:
    plan = FaultPlan("create", 1, (default_fault(fault_id, Point("hub", "watch")),))

    assert parse_plan(print_plan(plan)) == plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "reading plan"),
        ("[]", "plan: must be an object"),
        ('{"schema": "other"}', "schema: 'other' is not 'compute.faults/v1'"),
        ('{"schema": "compute.faults/v1", "sede": 1}', "plan.sede: is not known"),
        ('{"schema": "compute.faults/v1", "seed": "1"}', "plan.seed: must be a whole number"),
        ('{"schema": "compute.faults/v1", "faults": {}}', "faults: must be a list"),
        (
            '{"schema": "compute.faults/v1", "faults": [{"id": "D9"}]}',
            "'D9' is no single action",
        ),
        (
            '{"schema": "compute.faults/v1", "faults": [{"id": "A1", "action": "sneeze"}]}',
            r"faults\[0\].action: 'sneeze' is not known",
        ),
        (
            '{"schema": "compute.faults/v1", "faults": [{"id": "A1", "at": {"nht": 1}}]}',
            r"faults\[0\].at.nht: is not known",
        ),
        (
            '{"schema": "compute.faults/v1", "faults": [{"id": "A1", "with": {"delay": -1}}]}',
            r"faults\[0\].with.delay: must be a number of seconds",
        ),
        (
            '{"schema": "compute.faults/v1", "faults": [{"id": "A1", "at": {"plane": 3}}]}',
            r"faults\[0\].at.plane: must be a string",
        ),
    ],
)
def test_a_plan_with_a_mistake_is_refused_at_its_field(text: str, message: str) -> None:
    with pytest.raises(FaultPlanError, match=message):
        parse_plan(text)
