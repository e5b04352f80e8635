from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.identity import ANONYMOUS, User, authenticated
from compute_sim_planes.api_server.request_info import parse_path
from compute_sim_planes.json_types import JsonObject
from e2e.planes.certificates import Authority
from e2e.planes.gateway.claim_admission import is_claim_create, refuse_claim
from e2e.planes.gateway.first_touch import FirstTouches
from e2e.planes.gateway.identity import (
    derive_forwarded,
    derive_returned,
    user_of_certificate,
    user_of_token,
)
from e2e.planes.gateway.mirror import derive_copy, is_our_copy
from e2e.planes.gateway.nowhere import NOTHING, AskRoot, answer_nowhere
from e2e.planes.gateway.routing import Target, parse_target

PREFIX = "/apis/resourcemanager.miloapis.com/v1alpha1/projects"
PROJECT_REF: JsonObject = {"apiGroup": "resourcemanager.miloapis.com", "kind": "Project"}
INSTANCE_REF: JsonObject = {"apiGroup": "compute.datumapis.com", "kind": "Instance"}
INSTANCES = "compute.datumapis.com/instances"


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        ("/api/v1/namespaces", Target(None, "/api/v1/namespaces")),
        (f"{PREFIX}/p1", Target(None, f"{PREFIX}/p1")),
        (f"{PREFIX}/p1/control-plane", Target("p1", "/")),
        (f"{PREFIX}/p1/control-plane?x=1", Target("p1", "/", "x=1")),
        (f"{PREFIX}/p1/control-plane/api?watch=true", Target("p1", "/api", "watch=true")),
        (f"{PREFIX}/p1/control-planes/api", Target(None, f"{PREFIX}/p1/control-planes/api")),
        (f"{PREFIX}/a%2Fb/control-plane/x%2Fy", Target("a%2Fb", "/x%2Fy")),
    ],
)
def test_request_goes_to_the_plane_its_path_names(raw: str, target: Target) -> None:
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


def test_token_names_its_user_and_a_foreign_one_nobody() -> None:
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


def test_first_touch_of_a_kind_in_a_project_is_put_off_once() -> None:
    touches = FirstTouches()
    pods, maps = parse_path("/api/v1/pods"), parse_path("/api/v1/namespaces/x/configmaps/y")
    first = touches.refuse("p1", pods)
    assert isinstance(first, ApiError)
    assert (first.code, first.reason, first.retry_after) == (429, "TooManyRequests", 1)
    assert first.message == "storage is (re)initializing"
    assert touches.refuse("p1", pods) is None
    assert touches.refuse("p1", maps) is not None
    assert touches.refuse("p2", pods) is not None
    touches.forget("p1")
    assert touches.refuse("p1", pods) is not None
    assert touches.refuse("p2", pods) is None


@pytest.mark.parametrize(
    "path", ["/api", "/version", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"]
)
def test_discovery_and_questions_are_never_put_off(path: str) -> None:
    assert FirstTouches().refuse("p1", parse_path(path)) is None


def nowhere(method: str, path: str, query: str = "") -> AskRoot | ApiError:
    return answer_nowhere(method, Target("zz", path, query), parse_path(path))


def test_list_in_a_project_nobody_made_matches_nothing_at_the_root() -> None:
    answer = nowhere("GET", "/api/v1/configmaps", "watch=true&labelSelector=a%3Db")
    assert isinstance(answer, AskRoot)
    assert answer.target.project is None
    assert parse_qs(answer.target.query) == {"watch": ["true"], "labelSelector": [f"a=b,{NOTHING}"]}


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/api/v1/namespaces/default", 'namespaces "default" not found'),
        ("GET", "/api/v1/namespaces/a/configmaps/b", 'configmaps "b" not found'),
        ("DELETE", "/apis/x.y/v1/namespaces/a/things/b", 'things.x.y "b" not found'),
        ("POST", "/api/v1/namespaces/a/configmaps", 'namespaces "a" not found'),
    ],
)
def test_nothing_is_in_a_project_nobody_made(method: str, path: str, message: str) -> None:
    answer = nowhere(method, path)
    assert isinstance(answer, ApiError)
    assert (answer.code, answer.message) == (404, message)


def test_create_of_what_cannot_be_kept_says_so() -> None:
    answer = nowhere("POST", "/api/v1/namespaces")
    assert isinstance(answer, ApiError)
    assert answer.code == 501


@pytest.mark.parametrize("path", ["/apis", "/version", "/openapi/v3"])
def test_discovery_of_a_project_nobody_made_is_the_roots(path: str) -> None:
    assert nowhere("GET", path, "timeout=32s") == AskRoot(Target(None, path, "timeout=32s"))


def a_registration(active: str = "True") -> JsonObject:
    return {
        "spec": {
            "resourceType": INSTANCES,
            "consumerType": PROJECT_REF,
            "claimingResources": [INSTANCE_REF, PROJECT_REF],
        },
        "status": {"conditions": [{"type": "Active", "status": active}]},
    }


def a_claim(
    *types: str,
    amount: int = 1,
    consumer: JsonObject = PROJECT_REF,
    resource: JsonObject = INSTANCE_REF,
) -> JsonObject:
    return {
        "metadata": {"name": "c"},
        "spec": {
            "consumerRef": {**consumer, "name": "p1"},
            "resourceRef": {**resource, "name": "i"},
            "requests": [{"resourceType": one, "amount": amount} for one in types],
        },
    }


def test_claim_that_follows_the_rules_is_admitted() -> None:
    assert refuse_claim(a_claim(INSTANCES), [a_registration()]) is None
    any_case: JsonObject = {**INSTANCE_REF, "kind": "instance"}
    assert refuse_claim(a_claim(INSTANCES, resource=any_case), [a_registration()]) is None


@pytest.mark.parametrize(
    ("claim", "field"),
    [
        (a_claim("unknown"), 'spec.requests[0].resourceType: Invalid value: "unknown"'),
        (a_claim(INSTANCES, INSTANCES), "spec.requests[1].resourceType: Duplicate value"),
        (a_claim(INSTANCES, amount=0), "spec.requests[0].amount: Invalid value: 0"),
        (a_claim(INSTANCES, consumer=INSTANCE_REF), "spec.consumerRef: Invalid value"),
        (
            a_claim(INSTANCES, resource={"apiGroup": "x", "kind": "Instance"}),
            "spec.requests[0].resourceType: Forbidden: resource type x/Instance",
        ),
    ],
)
def test_claim_against_the_rules_is_refused_in_milos_words(claim: JsonObject, field: str) -> None:
    refusal = refuse_claim(claim, [a_registration()])
    assert refusal
    assert (refusal.code, refusal.reason) == (403, "Forbidden")
    lead = (
        'resourceclaims.quota.miloapis.com "c" is forbidden: '
        'ResourceClaim.quota.miloapis.com "c" is invalid: '
    )
    assert refusal.message.startswith(lead)
    assert field in refusal.message


def test_registration_that_is_not_active_does_not_count() -> None:
    assert refuse_claim(a_claim(INSTANCES), [a_registration("False")])


def test_several_problems_stand_in_brackets() -> None:
    refusal = refuse_claim(a_claim("unknown", amount=0), [])
    assert refusal
    assert " is invalid: [spec.requests[0].resourceType" in refusal.message
    assert refusal.message.endswith("]")


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/apis/quota.miloapis.com/v1alpha1/namespaces/n/resourceclaims", True),
        ("GET", "/apis/quota.miloapis.com/v1alpha1/namespaces/n/resourceclaims", False),
        ("POST", "/apis/quota.miloapis.com/v1alpha1/namespaces/n/resourcegrants", False),
        ("PATCH", "/apis/quota.miloapis.com/v1alpha1/namespaces/n/resourceclaims/c", False),
        ("POST", "/version", False),
    ],
)
def test_only_the_creation_of_a_claim_is_judged(method: str, path: str, *, expected: bool) -> None:
    assert is_claim_create(method, parse_path(path)) is expected


def test_copy_for_a_project_holds_what_people_wrote() -> None:
    found: JsonObject = {
        "apiVersion": "v1",
        "kind": "K",
        "metadata": {"name": "n", "labels": {"a": "b"}, "uid": "1", "resourceVersion": "2"},
        "spec": {"x": 1},
        "status": {"y": 2},
    }
    assert derive_copy(found) == {
        "apiVersion": "v1",
        "kind": "K",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"x": 1},
    }


def test_only_copies_of_ours_are_recognised() -> None:
    assert is_our_copy({"metadata": {"managedFields": [{"manager": "milo-mirror"}]}})
    assert not is_our_copy({"metadata": {"managedFields": [{"manager": "kubectl"}]}})
    assert not is_our_copy(None)
