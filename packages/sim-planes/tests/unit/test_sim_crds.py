from __future__ import annotations

import json
from pathlib import Path

import pytest

from compute_sim_planes.api_server.http.json_paths import parse_json_path
from compute_sim_planes.api_server.schema.compiled import (
    CompiledSchema,
    compile_schema,
    structural_problems,
)
from compute_sim_planes.crds import EXTERNAL_SYSTEMS, load_crds
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at

RECORDINGS = Path(__file__).parent.parent / "observed"
CRDS = load_crds()
BY_KIND = {
    (string_at(crd, "spec", "group"), string_at(crd, "spec", "names", "kind")): crd for crd in CRDS
}


def schema_document(crd: JsonObject) -> JsonObject:
    (version,) = objects_at(crd, "spec", "versions")
    return object_at(version, "schema", "openAPIV3Schema")


def schema_of(group: str, kind: str) -> CompiledSchema:
    return compile_schema(schema_document(BY_KIND[group, kind]))


def name_of(crd: JsonObject) -> str:
    return string_at(crd, "metadata", "name")


@pytest.mark.parametrize("crd", CRDS, ids=name_of)
def test_a_real_server_would_take_the_definition(crd: JsonObject) -> None:
    assert structural_problems(schema_document(crd)) == []
    plural, group = string_at(crd, "spec", "names", "plural"), string_at(crd, "spec", "group")
    assert name_of(crd) == f"{plural}.{group}"
    (version,) = objects_at(crd, "spec", "versions")
    for column in objects_at(version, "additionalPrinterColumns"):
        parse_json_path(string_at(column, "jsonPath"))


def test_every_external_system_has_its_kinds() -> None:
    kinds = {
        system: {string_at(crd, "spec", "names", "kind") for crd in load_crds(system)}
        for system in EXTERNAL_SYSTEMS
    }

    assert kinds == {
        "karmada": {
            "Cluster",
            "ClusterPropagationPolicy",
            "PropagationPolicy",
            "ResourceBinding",
            "ResourceInterpreterCustomization",
            "Work",
        },
        "milo": {
            "AllowanceBucket",
            "GrantCreationPolicy",
            "Project",
            "ProjectSuspension",
            "ProtectedResource",
            "ResourceClaim",
            "ResourceGrant",
            "ResourceRegistration",
            "Role",
        },
        "networking": {
            "Location",
            "Network",
            "NetworkBinding",
            "NetworkContext",
            "Subnet",
            "SubnetClaim",
        },
    }


def recorded_objects(file_name: str) -> list[JsonObject]:
    """Every object of an external system's kind in a recording, at any depth."""
    collected: list[JsonObject] = []

    def collect(value: JsonValue) -> None:
        if isinstance(value, dict):
            group = string_at(value, "apiVersion").partition("/")[0]
            if (group, string_at(value, "kind")) in BY_KIND and "metadata" in value:
                collected.append(value)
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect(json.loads((RECORDINGS / file_name).read_text("utf-8")))
    return collected


@pytest.mark.parametrize("file_name", ["karmada.json", "milo.json"])
def test_recorded_objects_fit_the_definitions_unchanged(file_name: str) -> None:
    objects = [
        document
        for document in recorded_objects(file_name)
        if "uid" in object_at(document, "metadata")
    ]

    assert len(objects) > 30
    for document in objects:
        group = string_at(document, "apiVersion").partition("/")[0]
        schema = schema_of(group, string_at(document, "kind"))
        assert schema.unknown_fields(document) == []
        assert schema.validate(document) == []
        assert schema.default(schema.prune(document)) == document


def defaulted(group: str, kind: str, spec: JsonObject) -> JsonObject:
    schema = schema_of(group, kind)
    document = schema.default({"metadata": {"name": "a"}, "spec": spec})
    assert schema.validate(document) == []
    return document


def test_a_policy_is_filled_in_as_the_hub_does_it() -> None:
    selector: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}

    document = defaulted(
        "policy.karmada.io", "PropagationPolicy", {"resourceSelectors": [selector]}
    )

    assert document["spec"] == {
        "resourceSelectors": [selector],
        "priority": 0,
        "preemption": "Never",
        "conflictResolution": "Abort",
        "schedulerName": "default-scheduler",
    }


def test_a_fresh_claim_awaits_its_evaluation() -> None:
    consumer: JsonObject = {"apiGroup": "g", "kind": "Project", "name": "p"}
    spec: JsonObject = {
        "consumerRef": consumer,
        "resourceRef": consumer,
        "requests": [{"resourceType": "a/b", "amount": 1}],
    }

    document = defaulted("quota.miloapis.com", "ResourceClaim", spec)

    assert objects_at(document, "status", "conditions") == [
        {
            "type": "Granted",
            "status": "False",
            "reason": "PendingEvaluation",
            "message": "Awaiting capacity evaluation",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
    ]


def test_a_fresh_project_has_no_status_yet() -> None:
    owner: JsonObject = {"ownerRef": {"kind": "Organization", "name": "o"}}

    assert "status" not in defaulted("resourcemanager.miloapis.com", "Project", owner)


@pytest.mark.parametrize(
    ("kind", "types", "spec"),
    [
        ("NetworkBinding", ["Ready"], {"network": {"name": "n"}, "location": {"name": "l"}}),
        (
            "SubnetClaim",
            ["Allocated", "Programmed", "Ready"],
            {
                "subnetClass": "private",
                "networkContext": {"name": "c"},
                "location": {"name": "l"},
                "ipFamily": "IPv4",
            },
        ),
    ],
)
def test_what_we_ask_of_the_network_is_pending_at_first(
    kind: str, types: list[str], spec: JsonObject
) -> None:
    document = defaulted("networking.datumapis.com", kind, spec)

    conditions = objects_at(document, "status", "conditions")
    assert [(string_at(c, "type"), string_at(c, "reason")) for c in conditions] == [
        (type_, "Pending") for type_ in types
    ]


@pytest.mark.parametrize(
    ("group", "kind", "spec", "path"),
    [
        (
            "policy.karmada.io",
            "PropagationPolicy",
            {"resourceSelectors": []},
            "spec.resourceSelectors",
        ),
        (
            "policy.karmada.io",
            "PropagationPolicy",
            {
                "resourceSelectors": [{"apiVersion": "v1", "kind": "X"}],
                "conflictResolution": "Maybe",
            },
            "spec.conflictResolution",
        ),
        ("cluster.karmada.io", "Cluster", {"syncMode": "Sideways"}, "spec.syncMode"),
        (
            "quota.miloapis.com",
            "ResourceGrant",
            {
                "consumerRef": {"kind": "Project", "name": "p"},
                "allowances": [{"resourceType": "a/b", "buckets": [{"amount": -1}]}],
            },
            "spec.allowances[0].buckets[0].amount",
        ),
        ("iam.miloapis.com", "Role", {}, "spec.launchStage"),
        (
            "networking.datumapis.com",
            "NetworkBinding",
            {"network": {"name": "n"}},
            "spec.location",
        ),
    ],
)
def test_what_does_not_fit_is_refused_at_its_field(
    group: str, kind: str, spec: JsonObject, path: str
) -> None:
    document: JsonObject = {"metadata": {"name": "a"}, "spec": spec}

    (problem,) = schema_of(group, kind).validate(document)

    assert problem.path == path
