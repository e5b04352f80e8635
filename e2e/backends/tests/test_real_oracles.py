from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from compute_api_types.wire import JsonObject
from compute_sim_planes.history import Request
from compute_sim_planes.oracles.invariants import field_ownership
from e2e.backends.real.auditing import AuditEntry
from e2e.backends.real.oracles import (
    derive_history,
    error_lines,
    refusals,
    traces_of_kopf,
)
from e2e.backends.real.recording import RecordedVersion
from e2e.oracles.layout import Layout
from e2e.oracles.ownership import ownership_in
from e2e.world.kinds import INSTANCE
from e2e.world.port import AuditedRequest

START = datetime(2026, 3, 1, tzinfo=UTC)
LAYOUT = Layout(frozenset({"dfw-1"}))


def a_request(seconds: float, user: str, *, revision: int = 0, status: int = 200) -> AuditEntry:
    audited = AuditedRequest(
        at=START + timedelta(seconds=seconds),
        user=user,
        agent="compute-cell-operator/1",
        plane="dfw-1",
        verb="patch",
        group="compute.datumapis.com",
        resource="instances",
        subresource="",
        namespace="ns-1",
        name="web-0",
        status=status,
    )
    return AuditEntry(audited, user, revision)


def an_instance(available: str) -> bytes:
    condition: JsonObject = {"type": "Available", "status": available}
    return orjson.dumps({"metadata": {"name": "web-0"}, "status": {"conditions": [condition]}})


def a_change(seconds: float, revision: int) -> RecordedVersion:
    at = START + timedelta(seconds=seconds)
    before, after = an_instance("False"), an_instance("True")
    return RecordedVersion(at, "dfw-1", INSTANCE, "ns-1/web-0", revision, before, after)


def test_a_write_that_changes_what_is_the_providers_breaks_field_ownership() -> None:
    history = derive_history([], [a_change(1.01, 7)], [a_request(1, "dfw-1", revision=7)])
    assert field_ownership(history, ownership_in(LAYOUT))


def test_a_write_that_changed_nothing_is_not_blamed_for_the_version_it_found() -> None:
    history = derive_history([], [a_change(1, 7)], [a_request(5, "dfw-1", revision=7)])
    (request,) = history.of(Request)
    assert request.commits == ()
    assert field_ownership(history, ownership_in(LAYOUT)) == []


def test_a_version_is_the_work_of_the_first_request_that_names_it() -> None:
    asked = [a_request(1, "dfw-1", revision=7), a_request(1.001, "dfw-1", revision=7)]
    history = derive_history([], [a_change(1.02, 7)], asked)
    assert [len(request.commits) for request in history.of(Request)] == [1, 0]


def test_refusals_of_operators_are_found_and_those_of_others_are_not() -> None:
    asked = [a_request(1, "dfw-1", status=403), a_request(1, "tenant", status=403)]
    assert [one.audited.user for one in refusals(asked)] == ["dfw-1"]


@pytest.mark.spec("PP-06")
@pytest.mark.parametrize(
    ("document", "count"),
    [
        ({"metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": "{}"}}}, 1),
        ({"metadata": {"name": "web-0"}, "status": {"kopf": {"progress": {}}}}, 1),
        ({"metadata": {"managedFields": [{"manager": "kopf"}]}, "status": {}}, 0),
    ],
)
def test_what_kopf_stores_on_an_instance_is_a_violation(document: JsonObject, count: int) -> None:
    after = orjson.dumps(document)
    version = RecordedVersion(START, "dfw-1", INSTANCE, "ns-1/web-0", 7, b"", after)
    assert len(traces_of_kopf([version])) == count


def test_errors_are_found_beyond_what_a_log_held_before(tmp_path: Path) -> None:
    log = tmp_path / "operator.log"
    lines = [{"level": "error", "msg": "old"}, {"level": "info"}, {"level": "error", "msg": "new"}]
    texts = [json.dumps(line) + "\n" for line in lines]
    log.write_text("".join(texts), "utf-8")
    (error,) = error_lines([log, tmp_path / "absent.log"], {log: len(texts[0])})
    assert "new" in error


def test_a_trace_in_a_log_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "operator.log"
    log.write_text("Traceback (most recent call last):\nnothing of note\n", "utf-8")
    assert len(error_lines([log], {})) == 1
