from __future__ import annotations

import pytest

from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.api_server.kinds.object_meta import meta_problems, meta_update_problems
from compute_sim_planes.json_types import JsonObject, JsonValue


def a_kind(kind: str = "Thing", group: str = "example.com", *, namespaced: bool = True) -> Kind:
    plural = f"{kind.lower()}s"
    return Kind(group, "v1", kind, plural, kind.lower(), f"{kind}List", namespaced)


def an_object(**metadata: JsonValue) -> JsonObject:
    return {"metadata": {"name": "a", "namespace": "n", **metadata}}


def an_owner(**fields: JsonValue) -> JsonObject:
    return {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "1", **fields}


def problems_of(document: JsonObject, kind: Kind | None = None) -> list[str]:
    return [str(problem) for problem in meta_problems(kind or a_kind(), document)]


def test_ordinary_metadata_are_fine() -> None:
    document = an_object(
        labels={"app": "web", "example.com/tier": "", "topology.datum.net/city-code": "DFW"},
        annotations={"Example.COM/Key": "any text at all\n", "plain": ""},
        finalizers=["example.com/cleanup", "orphan"],
        ownerReferences=[an_owner(controller=True), an_owner(name="p", controller=False)],
    )

    assert problems_of(document) == []


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a-", "a..b", "", "a" * 254, "a/b", "ä"])
def test_names_that_are_no_subdomain_are_refused(name: str) -> None:
    (problem,) = problems_of(an_object(name=name))[:1]

    assert problem.startswith("metadata.name: ")


def test_a_missing_name_is_reported_as_required() -> None:
    assert problems_of({"metadata": {"namespace": "n"}}) == [
        "metadata.name: Required value: name or generateName is required"
    ]


def test_a_generated_name_may_begin_with_a_prefix_that_ends_in_a_dash() -> None:
    assert problems_of(an_object(generateName="web-")) == []
    assert problems_of(an_object(generateName="Web-"))[0].startswith("metadata.generateName: ")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (a_kind("Namespace", "", namespaced=False), "a-b", "a.b"),
        (a_kind("Service", ""), "a1", "1a"),
        (a_kind("ClusterRole", "rbac.authorization.k8s.io", namespaced=False), "system:x", "a/b"),
        (a_kind("ConfigMap", ""), "a.b", "a:b"),
    ],
)
def test_some_kinds_have_rules_of_their_own_for_names(kind: Kind, good: str, bad: str) -> None:
    def of(name: str) -> JsonObject:
        return {"metadata": {"name": name, **({"namespace": "n"} if kind.namespaced else {})}}

    assert problems_of(of(good), kind) == []
    assert problems_of(of(bad), kind) != []


def test_scope_and_namespace_must_agree() -> None:
    cluster_scoped = a_kind(namespaced=False)

    assert problems_of(an_object(), cluster_scoped) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]
    assert problems_of({"metadata": {"name": "a"}}) == ["metadata.namespace: Required value"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"a/b/c": "x"}, 'metadata.labels: Invalid value: "a/b/c": a qualified name must consist'),
        ({"/a": "x"}, 'metadata.labels: Invalid value: "/a": prefix part must be non-empty'),
        ({"A.com/a": "x"}, 'metadata.labels: Invalid value: "A.com/a": prefix part a lowercase'),
        ({"a/": "x"}, 'metadata.labels: Invalid value: "a/": name part must be non-empty'),
        ({"x" * 64: ""}, "metadata.labels: Invalid value"),
        ({"a": "b c"}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        ({"a": "x" * 64}, "metadata.labels: Invalid value"),
    ],
)
def test_labels_are_checked_by_key_and_value(labels: JsonObject, expected: str) -> None:
    assert problems_of(an_object(labels=labels))[0].startswith(expected)


def test_annotations_have_a_limit_all_together() -> None:
    fits: JsonObject = {"a": "x" * (256 * 1024 - 1)}
    too_big: JsonObject = {"a": "x" * (256 * 1024 - 1), "b": ""}

    assert problems_of(an_object(annotations=fits)) == []
    assert problems_of(an_object(annotations=too_big)) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]


@pytest.mark.parametrize("field", ["apiVersion", "kind", "name", "uid"])
def test_an_owner_must_be_named_in_full(field: str) -> None:
    (problem,) = problems_of(an_object(ownerReferences=[an_owner(**{field: ""})]))

    assert problem.startswith(f"metadata.ownerReferences.{field}: Invalid value")


def test_an_object_has_at_most_one_controller() -> None:
    owners: list[JsonValue] = [an_owner(controller=True), an_owner(name="p", controller=True)]

    (problem,) = problems_of(an_object(ownerReferences=owners))

    assert 'Found "true" in references for o and p' in problem


def test_finalizers_are_qualified_names_and_two_of_them_exclude_each_other() -> None:
    assert problems_of(an_object(finalizers=["not a name"])) != []
    assert problems_of(an_object(finalizers=["orphan", "foregroundDeletion"])) != []


def update_problems(before: JsonObject, desired: JsonObject) -> list[str]:
    return [str(problem) for problem in meta_update_problems(a_kind(), before, desired)]


def test_an_update_without_a_version_is_refused() -> None:
    assert update_problems(an_object(), an_object()) == [
        'metadata.resourceVersion: Invalid value: "": must be specified for an update'
    ]


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "deletionTimestamp"])
def test_what_identifies_an_object_cannot_be_changed(field: str) -> None:
    before = an_object(resourceVersion="1", uid="u", creationTimestamp="t")
    desired = an_object(**{"resourceVersion": "1", field: "other"})

    assert update_problems(before, desired) == [
        f'metadata.{field}: Invalid value: "other": field is immutable'
    ]


def test_no_finalizer_is_added_to_what_is_being_deleted() -> None:
    before = an_object(resourceVersion="1", deletionTimestamp="t", finalizers=["a.com/x"])

    assert update_problems(before, an_object(resourceVersion="1", finalizers=[])) == []
    assert update_problems(
        before, an_object(resourceVersion="1", finalizers=["a.com/x", "a.com/y"])
    ) == [
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
            'deleted, found new finalizers []string{"a.com/y"}'
        )
    ]
