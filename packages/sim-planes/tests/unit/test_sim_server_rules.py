"""Pure rules of the server: merges, tolerated problems, metadata, paths, tokens, options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.authz.identity import ANONYMOUS, Tokens, User, authenticated
from compute_sim_planes.api_server.authz.token_file import TokenFileError, read_token_file
from compute_sim_planes.api_server.handlers.ratcheting import tolerate_unchanged
from compute_sim_planes.api_server.http.continue_token import Continuation, parse_continuation
from compute_sim_planes.api_server.http.presentation import Form, negotiate
from compute_sim_planes.api_server.http.request import is_true, parse_query
from compute_sim_planes.api_server.http.request_bodies import media_type, parse_yaml
from compute_sim_planes.api_server.http.request_info import ResourcePath, derive_verb, parse_path
from compute_sim_planes.api_server.http.server import PrefixRoutes
from compute_sim_planes.api_server.http.transport import BytesResponse, Transport
from compute_sim_planes.api_server.kinds.metadata_decoding import MetadataTypeError, shape_metadata
from compute_sim_planes.api_server.patch.json_patch import PatchSyntaxError
from compute_sim_planes.api_server.patch.strategic_merge import strategic_merge_patch
from compute_sim_planes.api_server.schema.field_problems import FieldProblem, invalid, required
from compute_sim_planes.json_types import JsonObject, JsonValue
from compute_sim_planes.kubeconfig import Context, render_kubeconfig, write_kubeconfig
from compute_sim_planes.time.sources import SUFFIX_LETTERS, SeededIdentities

CONTAINERS: JsonObject = {
    "containers": [
        {"name": "a", "image": "1", "args": ["x"]},
        {"name": "b", "image": "1"},
    ]
}


@pytest.mark.parametrize(
    ("existing", "patch", "expected"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": 3}}, {"a": {"c": 2, "d": 3}}),
        (
            CONTAINERS,
            {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]},
            {
                "containers": [
                    {"name": "a", "image": "2", "args": ["x"]},
                    {"name": "b", "image": "1"},
                    {"name": "c"},
                ]
            },
        ),
        (
            CONTAINERS,
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b", "image": "1"}]},
        ),
        (
            CONTAINERS,
            {"containers": [{"$patch": "replace"}, {"name": "z"}]},
            {"containers": [{"name": "z"}]},
        ),
        ({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}),
        ({"finalizers": ["a", "b"]}, {"finalizers": ["b", "c"]}, {"finalizers": ["a", "b", "c"]}),
        (
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
        ),
        (
            {"env": [{"name": "A"}, {"name": "B"}]},
            {
                "$setElementOrder/env": [{"name": "B"}, {"name": "A"}],
                "env": [{"name": "A", "v": 1}],
            },
            {"env": [{"name": "B"}, {"name": "A", "v": 1}]},
        ),
        ({"s": {"a": 1, "b": 2}}, {"s": {"$retainKeys": ["b"], "b": 3}}, {"s": {"b": 3}}),
        ({"s": {"a": 1}}, {"s": {"$patch": "replace", "b": 2}}, {"s": {"b": 2}}),
        ({"s": {"a": 1}}, {"s": {"$patch": "delete"}}, {"s": {}}),
        (
            {"ports": [{"containerPort": 1, "name": "x"}]},
            {"ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]},
            {"ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]},
        ),
        (
            {"ports": [{"port": 1, "name": "x"}]},
            {"ports": [{"port": 2}]},
            {"ports": [{"port": 1, "name": "x"}, {"port": 2}]},
        ),
    ],
)
def test_a_strategic_merge_patch(
    existing: JsonObject, patch: JsonObject, expected: JsonObject
) -> None:
    assert strategic_merge_patch(existing, patch) == expected


def test_a_strategic_merge_patch_is_an_object() -> None:
    with pytest.raises(PatchSyntaxError):
        strategic_merge_patch({}, [])


@pytest.mark.parametrize(
    ("problem", "before", "desired", "is_reported"),
    [
        (invalid("spec.a", 0, ""), {"spec": {"a": 0}}, {"spec": {"a": 0, "b": 1}}, False),
        (invalid("spec.a", 0, ""), {"spec": {"a": 1}}, {"spec": {"a": 0}}, True),
        (invalid("spec.a", 0, ""), {"spec": {}}, {"spec": {"a": 0}}, True),
        (
            invalid("spec.a[1].b", 0, ""),
            {"spec": {"a": [1, {"b": 0}]}},
            {"spec": {"a": [2, {"b": 0}]}},
            False,
        ),
        # True is not 1: a value that changed its type was changed.
        (invalid("spec.a", True, ""), {"spec": {"a": 1}}, {"spec": {"a": True}}, True),
        # A missing field is tolerated only where the rest of its object is unchanged.
        (required("spec.x"), {"spec": {"a": 1}}, {"spec": {"a": 1}, "m": 1}, False),
        (required("spec.x"), {"spec": {"a": 1}}, {"spec": {"a": 2}}, True),
    ],
)
def test_a_problem_in_an_unchanged_field_is_tolerated(
    problem: FieldProblem, before: JsonObject, desired: JsonObject, is_reported: bool
) -> None:
    assert bool(tolerate_unchanged([problem], before, desired)) is is_reported


def test_metadata_loses_what_is_unknown_or_empty() -> None:
    shaped, unknown = shape_metadata(
        {
            "name": "a",
            "namespace": "",
            "labels": {},
            "annotations": {"a": None},
            "generation": 0,
            "creationTimestamp": None,
            "surprise": 1,
            "finalizers": [],
            "managedFields": [{}],
            "ownerReferences": [{"uid": "u", "controller": False, "other": 1}],
        }
    )
    assert shaped == {
        "name": "a",
        "annotations": {"a": ""},
        "generation": 0,
        "managedFields": [{}],
        "ownerReferences": [{"uid": "u", "controller": False}],
    }
    assert unknown == ["metadata.surprise", "metadata.ownerReferences[0].other"]
    assert shape_metadata(None) == ({}, [])


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ([], "array into Go value of type v1.ObjectMeta"),
        ({"name": 1}, "number into Go struct field ObjectMeta.name of type string"),
        ({"labels": {"a": True}}, "bool into Go struct field ObjectMeta.labels of type string"),
        (
            {"labels": "a"},
            "string into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        ({"generation": "1"}, "string into Go struct field ObjectMeta.generation of type int64"),
        ({"generation": True}, "bool into Go struct field ObjectMeta.generation of type int64"),
        ({"finalizers": {}}, "object into Go struct field ObjectMeta.finalizers of type []string"),
        ({"finalizers": [1.5]}, "number into Go struct field ObjectMeta.finalizers of type string"),
        ({"ownerReferences": 1}, "of type []v1.OwnerReference"),
        ({"ownerReferences": [1]}, "of type v1.OwnerReference"),
        ({"ownerReferences": [{"controller": "yes"}]}, "OwnerReference.controller of type bool"),
        ({"managedFields": {}}, "of type []v1.ManagedFieldsEntry"),
    ],
)
def test_metadata_of_another_type_is_reported_with_gos_message(
    metadata: JsonValue, text: str
) -> None:
    with pytest.raises(MetadataTypeError) as caught:
        shape_metadata(metadata)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/nodes", ResourcePath("", "v1", "nodes")),
        ("/api/v1/namespaces", ResourcePath("", "v1", "namespaces")),
        ("/api/v1/namespaces/a", ResourcePath("", "v1", "namespaces", "a", "a")),
        ("/api/v1/namespaces/a/status", ResourcePath("", "v1", "namespaces", "a", "a", "status")),
        (
            "/api/v1/namespaces/a/finalize",
            ResourcePath("", "v1", "namespaces", "a", "a", "finalize"),
        ),
        ("/api/v1/namespaces/a/pods", ResourcePath("", "v1", "pods", "a")),
        ("/apis/g/v1/things/x/status", ResourcePath("g", "v1", "things", "", "x", "status")),
        ("/apis/g/v1/namespaces/a/things/x", ResourcePath("g", "v1", "things", "a", "x")),
        ("/apis/g/v1/namespaces/a/things/x%2Fy", ResourcePath("g", "v1", "things", "a", "x", "y")),
        ("/apis/g/v1/things/x/y/z", None),
        ("/apis/g/v1", None),
        ("/api", None),
        ("/healthz", None),
        ("/", None),
    ],
)
def test_a_path_is_parsed_into_its_resource(path: str, expected: ResourcePath | None) -> None:
    assert parse_path(path) == expected


@pytest.mark.parametrize(
    ("method", "name", "watching", "verb"),
    [
        ("GET", "", False, "list"),
        ("GET", "", True, "watch"),
        ("GET", "x", False, "get"),
        ("GET", "x", True, "get"),
        ("HEAD", "x", False, "get"),
        ("POST", "", False, "create"),
        ("PUT", "x", False, "update"),
        ("PATCH", "x", False, "patch"),
        ("DELETE", "x", False, "delete"),
        ("DELETE", "", False, "deletecollection"),
        ("TRACE", "", False, ""),
    ],
)
def test_the_verb_of_a_request(method: str, name: str, watching: bool, verb: str) -> None:
    path = ResourcePath("g", "v1", "things", "", name)
    assert derive_verb(method, path, watching=watching) == verb


@given(st.integers(0, 2**53), st.text(min_size=1))
def test_a_continue_token_has_the_next_key(revision: int, after: str) -> None:
    continuation = Continuation(revision, after)
    assert parse_continuation(continuation.token()) == continuation


@given(st.text())
def test_no_text_breaks_the_reader_of_continue_tokens(token: str) -> None:
    assert code_of_refusal(token) in {None, 400}


def code_of_refusal(token: str) -> int | None:
    try:
        parse_continuation(token)
    except api_errors.StatusError as refused:
        return refused.code
    return None


def test_booleans_of_a_query_are_read_as_go_reads_them() -> None:
    assert [is_true(value) for value in (None, "false", "False", "0", "", "1", "true", "x")] == [
        False, False, False, False, True, True, True, True,
    ]  # fmt: skip
    assert parse_query("a=1&a=2&b=&c=%2F") == {"a": "1", "b": "", "c": "/"}


def test_yaml_times_stay_texts_and_other_formats_are_told() -> None:
    assert parse_yaml(b"a: 2001-01-01\nb: 2001-01-01T00:00:00Z\nc: yes\nd: 1\n") == {
        "a": "2001-01-01",
        "b": "2001-01-01T00:00:00Z",
        "c": True,
        "d": 1,
    }
    assert media_type({"content-type": "Application/JSON; charset=utf-8"}) == "application/json"
    assert media_type({}) == "application/json"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form.OBJECT),
        ("*/*", Form.OBJECT),
        ("application/vnd.kubernetes.protobuf,application/json", Form.OBJECT),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Form.TABLE),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Form.OBJECT),
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", Form.METADATA),
        ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", None),
        ("application/vnd.kubernetes.protobuf", None),
        ("text/html", None),
    ],
)
def test_the_first_form_that_can_be_had_is_taken(accept: str, form: Form | None) -> None:
    assert negotiate(accept) is form


def test_a_token_authenticates_its_user() -> None:
    robot = authenticated("system:serviceaccount:compute:robot")
    tokens = Tokens({"secret": robot})
    assert robot.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:compute",
        "system:authenticated",
    )
    assert tokens.authenticate({"authorization": "Bearer secret"}) is robot
    assert tokens.authenticate({}) is ANONYMOUS
    assert tokens.authenticate({"authorization": "Bearer other"}) is None
    assert tokens.authenticate({"authorization": "Basic secret"}) is None


def test_a_user_is_shown_with_what_he_has() -> None:
    user = User("bob", ("g",), "u", (("project", ("p1",)),))
    assert user.as_json() == {
        "username": "bob",
        "uid": "u",
        "groups": ["g"],
        "extra": {"project": ["p1"]},
    }
    assert User("bob").as_json() == {"username": "bob"}


def test_users_come_from_a_token_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('t1,alice,1,"a, b"\n\nt2,bob,2\n', "utf-8")
    users = read_token_file(path)
    assert users["t1"] == authenticated("alice", "a", "b", uid="1")
    assert users["t2"] == authenticated("bob", uid="2")
    path.write_text("t1\n", "utf-8")
    with pytest.raises(TokenFileError, match="line 1"):
        read_token_file(path)


def test_a_kubeconfig_has_a_context_per_plane_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    contexts = [Context("hub", "https://h", "t1", b"CA"), Context("dfw", "http://d", "t2")]
    document = yaml.safe_load(render_kubeconfig(contexts))
    assert document["current-context"] == "hub"
    assert [context["name"] for context in document["contexts"]] == ["hub", "dfw"]
    assert document["clusters"][0]["cluster"] == {
        "server": "https://h",
        "certificate-authority-data": "Q0E=",
    }
    assert document["users"][1]["user"] == {"token": "t2"}
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, contexts)
    assert path.stat().st_mode & 0o077 == 0


class Named:
    """A transport with a name."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> BytesResponse:
        del method, target, headers, body
        return BytesResponse(200, {}, b"")


def test_planes_are_found_by_the_longest_beginning_of_the_path() -> None:
    routes = PrefixRoutes()
    outer, inner = Named(), Named()
    routes.add("/planes/a", outer)
    routes.add("/planes/a/deep", inner)
    matches: dict[str, tuple[Transport, str] | None] = {
        target: routes(target)
        for target in (
            "/planes/a/api?x=/planes/a/deep",
            "/planes/a/deep/api",
            "/planes/a",
            "/planes/ab",
        )
    }
    assert list(matches.values()) == [
        (outer, "/api?x=/planes/a/deep"),
        (inner, "/api"),
        (outer, "/"),
        None,
    ]
    routes.remove("/planes/a/deep")
    assert routes("/planes/a/deep/api") == (outer, "/deep/api")


def test_the_same_seed_gives_the_same_identities() -> None:
    one, other = SeededIdentities(7), SeededIdentities(7)
    drawn = [(one.uid(), one.suffix()) for _ in range(3)]
    assert drawn == [(other.uid(), other.suffix()) for _ in range(3)]
    assert len(set(drawn)) == 3
    assert all(set(suffix) <= set(SUFFIX_LETTERS) and len(suffix) == 5 for _, suffix in drawn)
