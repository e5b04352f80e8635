"""Rule 66: what a template may weigh, and how one that is stored heavier is edited."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from compute_api_types.validation import CannotDecide, Facts, Review, review_workload
from compute_api_types.validation.template_size import LARGEST_TEMPLATE, measure_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compute_api_types.validation import Document, Json

    Build = Callable[[str, Mapping[str, Json]], Document]

FACTS: Final = Facts("acme", frozenset({"DFW"}), {"default": Review.ALLOWED})
LIMIT: Final = 192 * 1024


def weighing(build: Build, length: int, **changes: Json) -> Document:
    env: Json = [{"name": "E", "value": "x" * length}]
    return build("sandbox", {"C.env": env, **changes})


def errors(wanted: Document, stored: Document | None = None) -> list[str]:
    verdict = review_workload(wanted, stored, FACTS)
    assert not isinstance(verdict, CannotDecide)
    return [error.text for error in verdict]


def size_of(document: Document) -> int:
    spec = document["spec"]
    assert isinstance(spec, dict)
    return len(json.dumps(spec["template"], separators=(",", ":")).encode())


@pytest.mark.spec("AT-01")
def test_a_template_may_weigh_192_kib_and_no_byte_more(build: Build) -> None:
    assert LARGEST_TEMPLATE == LIMIT
    beside = size_of(weighing(build, 0))
    assert errors(weighing(build, LIMIT - beside)) == []
    assert errors(weighing(build, LIMIT - beside + 1)) == [
        (
            "spec.template: Forbidden: 196609 bytes of JSON, at most 196608 are allowed; "
            "move large values into a ConfigMap or a Secret, or into the image"
        )
    ]


@pytest.mark.spec("AT-01")
def test_a_template_stored_heavier_is_edited_elsewhere_or_smaller_and_never_grows(
    build: Build,
) -> None:
    stored = weighing(build, 2 * LIMIT)
    assert errors(weighing(build, 2 * LIMIT, **{"P[0].scaleSettings.minReplicas": 3}), stored) == []
    assert errors(weighing(build, 2 * LIMIT - 1), stored) == []
    (refused,) = errors(weighing(build, 2 * LIMIT + 1), stored)
    size = size_of(stored)
    assert f"{size + 1} bytes of JSON, at most {size} are allowed" in refused


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        123456,
        1.5,
        "",
        'a "quoted" \\ text\n',
        "größer",
        [],
        {},
        [1, [2, "3"], None],
        {"a": {"b": [True, "c"]}, "d": "e"},
    ],
)
def test_a_value_is_measured_as_compact_json(value: Json) -> None:
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    # Digits are derived from bits: one more or less.
    assert abs(measure_json(value) - len(written.encode())) <= 1


def test_neither_depth_nor_a_number_without_end_stops_the_measuring() -> None:
    deep: Json = {}
    for _ in range(100_000):
        deep = [deep]
    assert measure_json(deep) == 200_002
    assert measure_json(10**100_000) > 99_000
