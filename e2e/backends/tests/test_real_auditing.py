from __future__ import annotations

import json
from pathlib import Path

import pytest

from compute_api_types.wire import JsonObject
from e2e.backends.real.auditing import AuditLogs, render_policy

CELL_HOME = "system:serviceaccount:compute-system:compute-cell-operator"
MANAGEMENT = "system:serviceaccount:compute-system:compute-management-operator"


def an_event(by: str = MANAGEMENT, verb: str = "patch", **members: object) -> dict[str, object]:
    return {
        "stage": "ResponseComplete",
        "requestURI": "/apis/compute.datumapis.com/v1alpha/namespaces/shop/instances/web-0",
        "verb": verb,
        "user": {"username": by},
        "userAgent": "compute-management-operator/0.1.0 (projection)",
        "objectRef": {
            "resource": "instances",
            "namespace": "shop",
            "name": "web-0",
            "apiGroup": "compute.datumapis.com",
        },
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-03-01T10:00:00.000001Z",
        **members,
    }


class Logs:
    """A folder of audit logs that a test writes to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read = AuditLogs(folder, frozenset({"dfw-1"})).read

    def add(self, plane: str, *events: dict[str, object]) -> None:
        with (self.folder / f"{plane}.log").open("a", encoding="utf-8") as log:
            log.writelines(json.dumps(event) + "\n" for event in events)


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


@pytest.mark.parametrize(
    ("plane", "identity", "agent", "user"),
    [
        ("p1", MANAGEMENT, "compute-management-operator/1", "management"),
        ("dfw-1", CELL_HOME, "compute-cell-operator/1", "dfw-1"),
        ("hub", "compute:cell:dfw-1", "compute-cell-operator/1", "dfw-1"),
        ("hub", "person:decommissioning", "compute-cell-operator/1", "person:decommissioning"),
        ("hub", "planes-admin", "karmada-scheduler/v1", "karmada-scheduler"),
        ("p1", "planes-admin", "scenario/tenant", "tenant"),
    ],
)
def test_each_requester_has_its_short_name(
    logs: Logs, plane: str, identity: str, agent: str, user: str
) -> None:
    logs.add(plane, an_event(identity, userAgent=agent))
    (entry,) = logs.read()
    assert (entry.audited.user, entry.audited.plane) == (user, plane)


def test_an_impersonated_user_is_the_requester(logs: Logs) -> None:
    logs.add(
        "hub",
        an_event(
            "planes-admin",
            userAgent="kubectl/v1",
            impersonatedUser={"username": "compute:cell:dfw-1"},
        ),
    )
    assert logs.read()[0].identity == "compute:cell:dfw-1"


def test_what_the_root_answers_for_a_project_that_is_gone_is_about_that_project(
    logs: Logs,
) -> None:
    extra = {"iam.miloapis.com/parent-name": ["gone"]}
    logs.add("root", an_event(user={"username": MANAGEMENT, "extra": extra}))
    assert logs.read()[0].audited.plane == "gone"


def test_dry_runs_are_left_out(logs: Logs) -> None:
    logs.add("p1", an_event(requestURI="/apis/x/v1/namespaces/a/instances?dryRun=All"))
    assert logs.read() == []


def test_a_watch_is_read_once_at_its_start(logs: Logs) -> None:
    begun = an_event(verb="watch", stage="ResponseStarted")
    logs.add("hub", begun, an_event(verb="watch"))
    assert [entry.audited.verb for entry in logs.read()] == ["watch"]


def test_a_line_that_is_being_written_is_read_when_it_is_whole(logs: Logs) -> None:
    whole = json.dumps(an_event()) + "\n"
    path = logs.folder / "hub.log"
    path.write_text(whole[:40], "utf-8")
    assert logs.read() == []
    path.write_text(whole, "utf-8")
    assert len(logs.read()) == 1
    assert len(logs.read()) == 1


def test_requests_of_all_planes_are_in_the_order_of_time(logs: Logs) -> None:
    logs.add("hub", an_event(requestReceivedTimestamp="2026-03-01T10:00:02Z"))
    logs.add("p1", an_event(requestReceivedTimestamp="2026-03-01T10:00:01Z"))
    assert [entry.audited.plane for entry in logs.read()] == ["p1", "hub"]


def test_a_refusal_by_a_terminating_namespace_is_marked(logs: Logs) -> None:
    causes: list[JsonObject] = [{"reason": "NamespaceTerminating"}]
    going = an_event(responseStatus={"code": 403, "details": {"causes": causes}})
    logs.add("p1", going, an_event(responseStatus={"code": 403}))
    assert sorted(entry.is_namespace_terminating for entry in logs.read()) == [False, True]


def test_a_write_names_the_version_it_made(logs: Logs) -> None:
    made: JsonObject = {"metadata": {"name": "web-0", "resourceVersion": "42"}}
    logs.add("p1", an_event(responseObject=made))
    assert logs.read()[0].revision == 42


def test_the_policy_writes_down_what_operators_write_whole(logs: Logs) -> None:
    del logs
    policy = render_policy(["dfw-1", "ord-1"])
    for user in (MANAGEMENT, CELL_HOME, "compute:cell:dfw-1", "compute:cell:ord-1"):
        assert f'"{user}"' in policy
