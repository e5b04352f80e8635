"""Answers as text and JSON: golden texts, narrow terminals, hostile messages, the schema."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from jsonschema import Draft202012Validator
from kubectl_worlds import (
    Planes,
    at,
    block_instance,
    bucket,
    condition,
    edit_workload,
    find,
    part,
    set_condition,
    settled,
)

from compute_api_types import labels
from compute_kubectl.render.documents import document_of
from compute_kubectl.render.layout import clean, format_age, quote_word, table, width_of, wrap
from compute_kubectl.render.schema import SCHEMA
from compute_kubectl.render.text import render_why
from compute_kubectl.snapshot.access import Access

GOLDEN = Path(__file__).parents[1] / "golden"


def ready() -> Planes:
    return settled()


def quota() -> Planes:
    planes = settled()
    message = (
        "Insufficient quota resources. instances: Resource quota exceeded: requested 1, available 0"
    )
    exceeded = condition("QuotaGranted", "False", "QuotaExceeded", message, 130)
    block_instance(planes, "web-main-ord-1", exceeded, gates=("Quota",), ready="PendingQuota")
    planes.project["allowancebuckets"] = [bucket("instances", 4, 4), bucket("vcpus", 40000, 4000)]
    return planes


def crash_with_write_back_cut() -> Planes:
    planes = settled()
    real = find(planes.cells["dfw-1"]["instances"], "web-main-dfw-0")
    for kind in ("Available", "Ready"):
        set_condition(real, condition(kind, "False", "InstanceCrashing", "exit code 1", 300))
    return planes


def project_alone() -> Planes:
    planes = settled().only_project()
    part(planes.project["workloaddeployments"][0], "metadata")["generation"] = 2
    return planes


def outage() -> Planes:
    planes = settled()
    gone = condition("Ready", "False", "ClusterNotReachable", "cluster is not reachable", 300)
    set_condition(find(planes.hub["clusters"], "ord-1"), gone)
    return planes.hide("ord-1", access=Access.UNREACHABLE)


def missing_network() -> Planes:
    planes = settled()
    edit_workload(planes, 500, 3)
    missing = condition("Ready", "False", "NetworkNotFound", "Unable to find networks: x", 501)
    set_condition(planes.project["workloads"][0], missing)
    return planes


def no_cluster() -> Planes:
    planes = settled(cities={"DFW": "dfw-1"})
    planes.hub["clusters"], planes.hub["resourcebindings"] = [], []
    planes.cells.clear()
    planes.hub["instances"], planes.project["instances"] = [], []
    for one in planes.every("workloaddeployments"):
        part(one, "status")["observedGeneration"] = 0
    return planes


def stalled() -> Planes:
    planes = settled()
    edit_workload(planes, 100, 3)
    return planes


def deleting() -> Planes:
    planes = settled(cities={"DFW": "dfw-1"})
    part(planes.project["workloads"][0], "metadata")["deletionTimestamp"] = at(400)
    part(planes.project["workloaddeployments"][0], "metadata")["deletionTimestamp"] = at(401)
    return planes


def quarantine() -> Planes:
    planes = settled()
    copy = find(planes.hub["instances"], "web-main-dfw-0")
    annotations = part(copy, "metadata", "annotations")
    annotations[labels.QUARANTINE_REASON] = "identity_mismatch"
    annotations[labels.QUARANTINE_MESSAGE] = "the labels name project beta"
    return planes


def refused() -> Planes:
    return settled().hide("project", "hub", "dfw-1", "ord-1", access=Access.REFUSED)


def many_cities() -> Planes:
    cities = {f"C{n:02}": f"cell-{n:02}" for n in range(12)}
    planes = settled(replicas=1, cities=cities)
    for n in range(4):
        crashing = condition("Available", "False", "ImageUnavailable", "manifest unknown", 60)
        block_instance(planes, f"web-main-c{n:02}-0", crashing)
    return planes


CASES: tuple[Callable[[], Planes], ...] = (
    ready,
    quota,
    crash_with_write_back_cut,
    project_alone,
    outage,
    missing_network,
    no_cluster,
    stalled,
    deleting,
    quarantine,
    refused,
    many_cities,
)


@pytest.mark.spec("WY-16")
@pytest.mark.parametrize("case", CASES, ids=lambda one: one.__name__)
def test_the_text_is_the_golden_one(case: Callable[[], Planes]) -> None:
    """`UPDATE_GOLDENS=1` writes the texts anew; they are reviewed as text."""
    text = "\n".join(render_why(case().explain(), 100)) + "\n"
    path = GOLDEN / f"why-{case.__name__.replace('_', '-')}.txt"
    if "UPDATE_GOLDENS" in os.environ:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("width", [40, 60, 100, 200])
@pytest.mark.parametrize("case", CASES, ids=lambda one: one.__name__)
def test_no_line_is_wider_than_the_terminal(case: Callable[[], Planes], width: int) -> None:
    lines = render_why(case().explain(), width)
    assert [line for line in lines if width_of(line) > width] == []


@pytest.mark.spec("WY-16")
@pytest.mark.parametrize("case", CASES, ids=lambda one: one.__name__)
def test_the_document_validates_against_its_schema(case: Callable[[], Planes]) -> None:
    validator = Draft202012Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    for name in ("web", "wbe"):
        answer = document_of(case().explain(name=name))
        assert validator.is_valid(answer)  # pyright: ignore[reportUnknownMemberType]


HOSTILE = "\x1b[31mred\x1b[0m\r\nfake: all is well \u202e\u2066reversed\u2069 \u200bz \x9b2J\x07"


@pytest.mark.spec("WY-15")
def test_escapes_and_newlines_of_a_message_are_inert() -> None:
    planes = settled()
    crashing = condition("Available", "False", "InstanceCrashing", HOSTILE, 60)
    block_instance(planes, "web-main-dfw-0", crashing)
    lines = render_why(planes.explain(), 100)
    text = "\n".join(lines)
    assert "[31mred" in text
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("fake:") for line in lines)
    for one in _texts(document_of(planes.explain())):
        assert one.isprintable()


def test_the_world_has_the_markers_that_no_answer_may_have() -> None:
    assert {"MARKER-env", "MARKER-args"} <= set(_texts(settled().project["workloads"][0]))


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in cast("dict[str, object]", value).values() for text in _texts(one)]
    if isinstance(value, list):
        return [text for one in cast("list[object]", value) for text in _texts(one)]
    return []


@pytest.mark.spec("WY-15")
def test_names_are_quoted_in_the_commands_that_are_offered() -> None:
    assert quote_word("shop") == "shop"
    assert quote_word("a b; rm -rf /") == "'a b; rm -rf /'"


@pytest.mark.spec("WY-14")
@pytest.mark.parametrize("case", CASES, ids=lambda one: one.__name__)
def test_values_of_env_and_args_are_in_no_answer(case: Callable[[], Planes]) -> None:
    planes = case()
    answer = planes.explain()
    assert "MARKER" not in "\n".join(render_why(answer, 100))
    assert "MARKER" not in str(document_of(answer))
    assert "MARKER" not in str(planes.snapshot())


def test_ages_have_two_units() -> None:
    assert [
        format_age(timedelta(seconds=one)) for one in (0, 59, 61, 372, 3600, 3660, 90000, 864000)
    ] == ["0 s", "59 s", "1 m 1 s", "6 m 12 s", "1 h", "1 h 1 m", "1 d 1 h", "10 d"]


def test_wide_characters_count_twice_and_long_words_are_broken() -> None:
    assert width_of("東京") == 4
    assert all(width_of(line) <= 20 for line in wrap("東京" * 30 + " " + "x" * 90, 20))
    assert clean("a\u0000b\n c") == "a b c"
    rows = [["city", "ready"], ["DFW", "2/2"]]
    assert table(rows, 40) == ["city   ready", "DFW    2/2"]
    assert table(rows, 8) == ["city", "  ready", "DFW", "  2/2"]
