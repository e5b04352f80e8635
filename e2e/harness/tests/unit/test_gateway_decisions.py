from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.authz.identity import ANONYMOUS, User, authenticated
from compute_sim_planes.api_server.http.request_info import ResourcePath, parse_path
from compute_sim_planes.json_types import JsonObject
from e2e.harness.access.certificates import Authority
from e2e.harness.gateway.admission import find_refusal, may_create
from e2e.harness.gateway.directory import ProjectDirectory
from e2e.harness.gateway.identity import (
    derive_forwarded,
    derive_returned,
    user_of_certificate,
    user_of_token,
)
from e2e.harness.gateway.mirror import derive_copy, is_our_copy
from e2e.harness.gateway.missing_project import MATCHES_NOTHING, AskRoot, answer_for_missing_project
from e2e.harness.gateway.routing import RouteTarget, parse_target
from e2e.harness.gateway.suspensions import (
    SuspendedProjects,
    find_refusal_of_suspended,
    may_be_refused,
    path_of_object,
)

PREFIX = "/apis/resourcemanager.miloapis.com/v1alpha1/projects"
PROJECT_REF: JsonObject = {"apiGroup": "resourcemanager.miloapis.com", "kind": "Project"}
INSTANCE_REF: JsonObject = {"apiGroup": "compute.datumapis.com", "kind": "Instance"}
INSTANCES = "compute.datumapis.com/instances"


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        ("/api/v1/namespaces", RouteTarget(None, "/api/v1/namespaces")),
        (f"{PREFIX}/p1", RouteTarget(None, f"{PREFIX}/p1")),
        (f"{PREFIX}/p1/control-plane", RouteTarget("p1", "/")),
        (f"{PREFIX}/p1/control-plane?x=1", RouteTarget("p1", "/", "x=1")),
        (f"{PREFIX}/p1/control-plane/api?watch=true", RouteTarget("p1", "/api", "watch=true")),
        (f"{PREFIX}/p1/control-planes/api", RouteTarget(None, f"{PREFIX}/p1/control-planes/api")),
        (f"{PREFIX}/a%2Fb/control-plane/x%2Fy", RouteTarget("a%2Fb", "/x%2Fy")),
    ],
)
def test_request_goes_to_the_plane_its_path_names(raw: str, target: RouteTarget) -> None:
    assert parse_target(raw) == target


def test_client_cannot_speak_in_another_name() -> None:
    sent = [
        ("X-Remote-User", "admin"),
        ("x-remote-group", "system:masters"),
        ("X-Remote-Extra-iam.miloapis.com%2fparent-name", "p2"),
        ("Authorization", "Bearer t"),
        ("Content-Length", "7"),
        ("Accept", "application/json"),
    ]
    forwarded = derive_forwarded(sent, User("u", ("g1", "g2")), "p1")
    assert forwarded == [
        ("Accept", "application/json"),
        ("X-Remote-User", "u"),
        ("X-Remote-Group", "g1"),
        ("X-Remote-Group", "g2"),
        ("X-Remote-Extra-iam.miloapis.com%2fparent-api-group", "resourcemanager.miloapis.com"),
        ("X-Remote-Extra-iam.miloapis.com%2fparent-type", "Project"),
        ("X-Remote-Extra-iam.miloapis.com%2fparent-name", "p1"),
    ]


def test_root_requests_have_no_parent() -> None:
    assert derive_forwarded([], User("u"), None) == [("X-Remote-User", "u")]


@given(st.sampled_from(["x-remote-", "X-Remote-", "X-REMOTE-"]), st.text("abcUser-%2f", min_size=1))
def test_no_spelling_of_an_identity_header_gets_through(prefix: str, rest: str) -> None:
    assert derive_forwarded([(prefix + rest, "v")], User("u"), None) == [("X-Remote-User", "u")]


def test_headers_of_the_connection_are_not_handed_on() -> None:
    sent = [("Transfer-Encoding", "chunked"), ("Connection", "close"), ("Audit-Id", "1")]
    assert derive_returned(sent) == [("Audit-Id", "1")]


def test_token_names_its_user_and_a_foreign_one_none() -> None:
    users = {"t": authenticated("u")}
    assert user_of_token("Bearer t", users) == authenticated("u")
    assert user_of_token("bearer  t", users) == authenticated("u")
    assert user_of_token("Bearer other", users) is None
    assert user_of_token("Basic t", users) is None


def test_certificate_names_its_user_and_groups() -> None:
    authority = Authority("ca", datetime.now(UTC))

    def der(user: str, *groups: str) -> bytes:
        pair = authority.issue_client(user, groups)
        return x509.load_pem_x509_certificate(pair.certificate).public_bytes(Encoding.DER)

    assert user_of_certificate(der("u", "g1", "g2")) == authenticated("u", "g1", "g2")
    nameless = x509.load_pem_x509_certificate(authority.certificate).public_bytes(Encoding.DER)
    assert user_of_certificate(nameless).name == "ca"
    assert ANONYMOUS.groups == ("system:unauthenticated",)


def at(path: str) -> ResourcePath:
    parsed = parse_path(path)
    assert parsed
    return parsed


def in_missing_project(method: str, path: str, query: str = "") -> AskRoot | StatusError:
    return answer_for_missing_project(method, RouteTarget("zz", path, query), parse_path(path))


def test_list_in_a_missing_project_matches_nothing_at_the_root() -> None:
    answer = in_missing_project("GET", "/api/v1/configmaps", "watch=true&labelSelector=a%3Db")
    assert isinstance(answer, AskRoot)
    assert answer.target.project is None
    assert parse_qs(answer.target.query) == {
        "watch": ["true"],
        "labelSelector": [f"a=b,{MATCHES_NOTHING}"],
    }


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/api/v1/namespaces/default", 'namespaces "default" not found'),
        ("GET", "/api/v1/namespaces/a/configmaps/b", 'configmaps "b" not found'),
        ("DELETE", "/apis/x.y/v1/namespaces/a/things/b", 'things.x.y "b" not found'),
        ("POST", "/api/v1/namespaces/a/configmaps", 'namespaces "a" not found'),
    ],
)
def test_a_missing_project_is_empty(method: str, path: str, message: str) -> None:
    answer = in_missing_project(method, path)
    assert isinstance(answer, StatusError)
    assert (answer.code, answer.message) == (404, message)


def test_create_in_a_missing_project_is_refused() -> None:
    answer = in_missing_project("POST", "/api/v1/namespaces")
    assert isinstance(answer, StatusError)
    assert answer.code == 501


@pytest.mark.parametrize("path", ["/apis", "/version", "/openapi/v3"])
def test_discovery_of_a_missing_project_is_the_roots(path: str) -> None:
    assert in_missing_project("GET", path, "timeout=32s") == AskRoot(
        RouteTarget(None, path, "timeout=32s")
    )


def a_registration(active: str = "True") -> JsonObject:
    return {
        "spec": {
            "resourceType": INSTANCES,
            "consumerType": PROJECT_REF,
            "claimingResources": [INSTANCE_REF, PROJECT_REF],
        },
        "status": {"conditions": [{"type": "Active", "status": active}]},
    }


def a_claim(resource_type: str) -> JsonObject:
    return {
        "metadata": {"name": "c"},
        "spec": {
            "consumerRef": {**PROJECT_REF, "name": "p1"},
            "resourceRef": {**INSTANCE_REF, "name": "i"},
            "requests": [{"resourceType": resource_type, "amount": 1}],
        },
    }


CLAIMS = "/apis/quota.miloapis.com/v1alpha1/namespaces/n/resourceclaims"
REGISTRATIONS = "/apis/quota.miloapis.com/v1alpha1/resourceregistrations"


def judged(path: str, wanted: JsonObject, *registrations: JsonObject) -> StatusError | None:
    asked = parse_path(path)
    assert asked
    return find_refusal(asked, wanted, registrations)


def test_claim_that_follows_the_rules_is_admitted() -> None:
    assert judged(CLAIMS, a_claim(INSTANCES), a_registration()) is None


def test_claim_against_the_rules_is_refused_in_milos_words() -> None:
    refusal = judged(CLAIMS, a_claim(INSTANCES), a_registration("False"))
    assert refusal
    assert (refusal.code, refusal.reason) == (403, "Forbidden")
    assert refusal.message.startswith(
        'resourceclaims.quota.miloapis.com "c" is forbidden: '
        'ResourceClaim.quota.miloapis.com "c" is invalid: '
    )


def test_registration_of_a_taken_type_is_refused_even_by_one_that_is_not_active() -> None:
    wanted: JsonObject = {**a_registration(), "metadata": {"name": "second"}}
    assert judged(REGISTRATIONS, wanted) is None
    refusal = judged(REGISTRATIONS, wanted, a_registration("False"))
    assert refusal
    assert refusal.code == 403


@pytest.mark.parametrize(
    ("method", "form", "path", "expected"),
    [
        ("POST", "application/json", CLAIMS, True),
        ("POST", "application/json", REGISTRATIONS, True),
        ("PATCH", "application/apply-patch+yaml", f"{CLAIMS}/c", True),
        ("PATCH", "application/merge-patch+json", f"{CLAIMS}/c", False),
        ("PATCH", "application/apply-patch+yaml", f"{CLAIMS}/c/status", False),
        ("GET", "", CLAIMS, False),
        ("POST", "", "/apis/quota.miloapis.com/v1alpha1/namespaces/n/resourcegrants", False),
        ("POST", "", "/version", False),
    ],
)
def test_only_what_can_make_a_claim_or_a_registration_is_judged(
    method: str, form: str, path: str, *, expected: bool
) -> None:
    assert may_create(method, form, parse_path(path)) is expected


def test_directory_has_added_and_removed_projects(tmp_path: Path) -> None:
    written, read = (ProjectDirectory(tmp_path / "projects.json") for _ in range(2))
    assert read.read() == {}
    written.write({"p1": "https://one"})
    assert read.read() == {"p1": "https://one"}
    written.write({"p2": "https://two"})
    assert read.read() == {"p2": "https://two"}


def test_copy_for_a_project_holds_what_people_wrote() -> None:
    document: JsonObject = {
        "apiVersion": "v1",
        "kind": "K",
        "metadata": {"name": "n", "labels": {"a": "b"}, "uid": "1", "resourceVersion": "2"},
        "spec": {"x": 1},
        "status": {"y": 2},
    }
    assert derive_copy(document) == {
        "apiVersion": "v1",
        "kind": "K",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"x": 1},
    }


def test_only_copies_of_ours_are_recognised() -> None:
    assert is_our_copy({"metadata": {"managedFields": [{"manager": "milo-mirror"}]}})
    assert not is_our_copy({"metadata": {"managedFields": [{"manager": "kubectl"}]}})
    assert not is_our_copy(None)


def a_suspended_project(status: str = "True") -> JsonObject:
    return {
        "metadata": {"name": "p1"},
        "status": {
            "conditions": [{"type": "Suspended", "status": status}],
            "suspensions": [{"reason": "Fraud"}, {"reason": "Billing"}, {"reason": "Fraud"}],
        },
    }


@pytest.mark.parametrize(
    ("method", "path", "may"),
    [
        ("POST", "/api/v1/namespaces/default/events", True),
        ("PUT", "/apis/compute.datumapis.com/v1alpha/namespaces/d/workloads/w/status", True),
        ("PATCH", "/api/v1/namespaces/default", True),
        ("DELETE", "/api/v1/namespaces/default", False),
        ("GET", "/api/v1/namespaces/default", False),
        ("POST", "/version", False),
    ],
)
def test_only_creates_and_updates_of_objects_may_be_refused(
    method: str, path: str, *, may: bool
) -> None:
    assert may_be_refused(method, parse_path(path)) is may


def test_writes_into_a_suspended_project_are_refused_but_for_the_exempt() -> None:
    path = "/apis/compute.datumapis.com/v1alpha/namespaces/d/workloads/w/status"
    asked = parse_path(path)
    assert asked is not None
    project, user = a_suspended_project(), authenticated("operator")
    refusal = find_refusal_of_suspended(project, asked, user, {"metadata": {}}, "w")
    assert refusal is not None
    assert refusal.message == (
        'workloads.compute.datumapis.com "w" is forbidden: project "p1" is suspended '
        "(Billing, Fraud) and cannot accept new updates while suspended"
    )
    going: JsonObject = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert find_refusal_of_suspended(project, asked, user, going, "w") is None
    admin = authenticated("admin", "system:masters")
    assert find_refusal_of_suspended(project, asked, admin, None, "w") is None
    resumed = a_suspended_project("False")
    assert find_refusal_of_suspended(resumed, asked, user, None, "w") is None
    assert path_of_object(path, asked) == path.removesuffix("/status")


def test_only_projects_that_are_suspended_are_kept() -> None:
    known = SuspendedProjects()
    known.note(a_suspended_project())
    assert known.find("p1") is not None
    known.note(a_suspended_project("False"))
    assert known.find("p1") is None
    known.note(a_suspended_project())
    known.note(a_suspended_project(), is_deleted=True)
    assert known.find("p1") is None
