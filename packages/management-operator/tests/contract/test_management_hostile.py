"""Objects that bypassed admission, and malicious ones: only their own key suffers."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import pytest
from management_builders.documents import (
    a_document,
    a_template_document,
    a_workload_document,
)
from management_builders.hub_script import (
    PROJECT,
    WD,
    Hub,
    annotations_of,
    labels_of,
    metadata_of,
    play_hub,
)
from management_builders.world import (
    World,
    a_review,
    condition_of,
    name_of,
    play,
    shown,
    spec_of,
    status_of,
    uid_of,
)

from compute_api_types import labels, reasons
from compute_management_operator.admission.review import AdmissionRefused
from compute_management_operator.planes import (
    DEPLOYMENT,
    HUB,
    INSTANCE,
    NAMESPACE,
    WORKLOAD,
)
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    decode_json_object,
    encode,
    member_list,
    member_object,
    member_text,
)

STRANGER = "beta"
PANICS = "controller_runtime_reconcile_panics_total"
OF_PROJECT: JsonObject = {labels.PARENT_NAME_EXTRA: [PROJECT]}


def in_template(**metadata: Mapping[str, str]) -> JsonObject:
    template = a_template_document()
    template["metadata"] = {name: {**entries} for name, entries in metadata.items()}
    return template


def causes_of(refused: AdmissionRefused) -> list[str]:
    status = decode_json_object(encode(refused.status))
    listed = member_list(member_object(status, "details"), "causes")
    return [member_text(cause, "field") for cause in listed if isinstance(cause, dict)]


# --- data -----------------------------------------------------------------------------------------

ODD_WORKLOADS: Mapping[str, Json] = {
    "no-spec": None,
    "text": "spec",
    "no-members": {},
    "placements-text": {"placements": "us", "template": "web"},
    "placements-mixed": {"placements": [None, 3, {"name": None, "cityCodes": "DFW"}, {}]},
    "cities-mixed": {"placements": [{"name": "us", "cityCodes": [None, 7, "", "New York", {}]}]},
    "interfaces-text": {
        "placements": [{"name": "us", "cityCodes": ["DFW"]}],
        "template": {"spec": {"networkInterfaces": [None, "default", {"network": 3}]}},
    },
    "replicas-negative": {
        "placements": [
            {"name": "us", "cityCodes": ["DFW"], "scaleSettings": {"minReplicas": -(10**12)}}
        ]
    },
    "replicas-huge": {
        "placements": [
            {"name": "us", "cityCodes": ["DFW"], "scaleSettings": {"minReplicas": 2**62}}
        ]
    },
    "a" * 253: {"placements": [{"name": "p" * 253, "cityCodes": ["D" * 300]}]},
}
ODD_DEPLOYMENTS: Mapping[str, Json] = {
    "wd-no-spec": None,
    "wd-text": "spec",
    "wd-city-null": {"cityCode": None, "workloadRef": "web"},
    "wd-replicas": {"cityCode": "DFW", "scaleSettings": {"minReplicas": -1}, "template": []},
}


def an_odd(document: JsonObject, spec: Json) -> JsonObject:
    return {**document, "spec": spec} if spec is not None else document


@pytest.mark.fault("F1")
def test_objects_of_any_shape_stop_no_other_object() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        for kind in (WORKLOAD, DEPLOYMENT):
            await world.accept_anything(PROJECT, kind)
        for name, spec in ODD_WORKLOADS.items():
            await world.create(PROJECT, an_odd(a_document(WORKLOAD, name, "default"), spec))
        for name, spec in ODD_DEPLOYMENTS.items():
            await world.create(PROJECT, an_odd(a_document(DEPLOYMENT, name, "default"), spec))
        await world.sleep(20)
        await world.create(PROJECT, a_workload_document())
        await world.eventually(hub.has_copy, within=5)
        assert hub.process.measures.total(PANICS) == 0
        for name in ODD_WORKLOADS:
            existing = await world.get(PROJECT, WORKLOAD, name)
            assert condition_of(existing, "Available")[0] == "False", name
        await world.sleep(120)  # no cell ever reports here, which is shown after a minute
        assert shown(await world.rests(minutes=10)) == []
        for name in ODD_WORKLOADS:
            await world.delete(PROJECT, WORKLOAD, name)
        await world.sleep(30)
        assert await world.names(PROJECT, WORKLOAD) == ["web"]

    play_hub(story)


@pytest.mark.fault("F2")
def test_names_that_are_too_long_are_shortened_with_the_full_value_beside_them() -> None:
    project = "north-american-retail-storefront-production-environment-two"
    namespace = "n" * 63
    workload = "w" * 253

    async def scenario(world: World) -> None:
        await world.add_project(project, cities=("DFW",))
        await world.create(project, a_document(NAMESPACE, namespace))
        await world.add_network(project, "default", namespace)
        process = world.process()
        process.start()
        await world.sleep(2)
        for placement in ("p" * 63, "p" * 62):
            document = a_workload_document(
                workload if placement == "p" * 63 else "v" * 253,
                {placement: ("DFW",)},
                namespace=namespace,
            )
            await world.create(project, document)
        place = f"ns-{uid_of(await world.get(project, NAMESPACE, namespace))}"
        await world.sleep(5)
        made = await world.listed(HUB, DEPLOYMENT, place)
        assert len(made) == 2
        assert len({name_of(one) for one in made}) == 2
        for existing in (*made, await world.get(HUB, NAMESPACE, place)):
            assert len(name_of(existing)) <= 52
            key = labels.UPSTREAM_CLUSTER_NAME
            assert labels_of(existing)[key] == "cluster-h-b5aece8171cd0e48c3f2"
            assert annotations_of(existing)[key] == project
            assert all(len(str(value)) <= 63 for value in labels_of(existing).values())
        names = {member_text(member_object(spec_of(one), "workloadRef"), "name") for one in made}
        assert names == {workload, "v" * 253}
        await world.delete(project, WORKLOAD, workload, namespace)
        await world.eventually(lambda: world.is_gone(project, WORKLOAD, workload, namespace))
        assert len(await world.listed(HUB, DEPLOYMENT, place)) == 1

    play(scenario)


# --- forged keys ----------------------------------------------------------------------------------

FORGED = {
    labels.UPSTREAM_CLUSTER_NAME: f"cluster-{STRANGER}",
    labels.UPSTREAM_NAMESPACE: "kube-system",
    labels.WORKLOAD_UID: "of-a-stranger",
    labels.TOPOLOGY_CITY_CODE: "LHR",
}


@pytest.mark.fault("G1")
def test_reserved_keys_in_a_template_are_refused_by_name() -> None:
    async def story(hub: Hub) -> None:
        template = in_template(labels=FORGED, annotations={labels.FEDERATION_NAMESPACE: "ns-x"})
        desired = a_workload_document(template=template)
        refused = await hub.process.admit(a_review(desired, OF_PROJECT))
        assert isinstance(refused, AdmissionRefused)
        assert refused.status["code"] == 422
        reserved = sorted(key for key in FORGED if labels.is_reserved(key))
        assert reserved != []
        assert causes_of(refused) == [
            *(f"spec.template.metadata.labels[{key}]" for key in reserved),
            f"spec.template.metadata.annotations[{labels.FEDERATION_NAMESPACE}]",
        ]

    play_hub(story)


@pytest.mark.fault("G1")
def test_reserved_keys_that_came_past_admission_name_nothing() -> None:
    async def story(hub: Hub) -> None:
        template = in_template(labels=FORGED, annotations=FORGED)
        # As stored before the schema had rules, which refuse a new one.
        await hub.world.accept_anything(PROJECT, WORKLOAD)
        made = await hub.world.create(PROJECT, a_workload_document(template=template))
        await hub.world.eventually(hub.has_copy)
        existing, copy = await hub.world.get(PROJECT, DEPLOYMENT, WD), await hub.copy()
        assert labels_of(existing) == {
            labels.WORKLOAD_UID: uid_of(made),
            labels.WORKLOAD_NAME: "web",
        }
        assert labels_of(copy) == {
            labels.UPSTREAM_CLUSTER_NAME: f"cluster-{PROJECT}",
            labels.UPSTREAM_NAMESPACE: "default",
            labels.TOPOLOGY_CITY_CODE: "DFW",
        }
        assert annotations_of(copy) == {labels.PROJECT_GENERATION: "1"}
        assert hub.world.writes(plane=STRANGER) == []

    play_hub(story, projects=(PROJECT, STRANGER))


@pytest.mark.fault("G2")
def test_labels_of_his_own_objects_lead_a_tenant_nowhere() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        await hub.federate(project=STRANGER)
        await hub.project()
        await world.sleep(2)
        theirs = await hub.namespace(project=STRANGER)
        copy = await world.get(HUB, DEPLOYMENT, WD, theirs)
        desired = labels_of(await hub.projection())
        before = len(world.writes())
        await world.patch(PROJECT, INSTANCE, f"{WD}-0", {"metadata": {"labels": {**FORGED}}})
        await world.patch(PROJECT, DEPLOYMENT, WD, {"metadata": {"labels": {**FORGED}}})
        await world.sleep(10)
        shown_now = labels_of(await hub.projection())
        reserved = {key for key in FORGED if labels.is_reserved(key)}
        assert {key: shown_now.get(key) for key in reserved} == {
            key: desired.get(key) for key in reserved
        }
        assert await world.get(HUB, DEPLOYMENT, WD, theirs) == copy
        touched = {(one.address.plane, one.address.namespace) for one in world.writes()[before:]}
        assert touched <= {(PROJECT, "default"), (HUB, await hub.namespace())}

    play_hub(story, projects=(PROJECT, STRANGER))


# --- references and paths -------------------------------------------------------------------------

CROOKED = ("..", "../../../../api/v1/secrets", "a/b", "a%2fb", "a?b", "a#b", ".")


@pytest.mark.fault("G6")
@pytest.mark.parametrize("name", CROOKED)
def test_a_network_with_an_invalid_name_is_refused_without_a_request_for_it(name: str) -> None:
    async def story(hub: Hub) -> None:
        desired = a_workload_document(template=a_template_document(networks=(name,)))
        before = len(hub.world.requests())
        refused = await hub.process.admit(a_review(desired, OF_PROJECT))
        assert isinstance(refused, AdmissionRefused)
        assert causes_of(refused) == ["spec.template.spec.networkInterfaces[0].network.name"]
        # The project is idle: its Locations are listed, and whether it serves Networks is asked.
        asked = [one.address for one in hub.world.requests()[before:]]
        assert {(one.verb, one.resource, one.name) for one in asked} == {
            ("list", "locations", ""),
            ("list", "networks", ""),
        }

    play_hub(story)


@pytest.mark.fault("G6")
def test_a_crooked_reference_past_admission_reaches_no_path() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await world.accept_anything(PROJECT, WORKLOAD)
        for number, name in enumerate(CROOKED):
            interface: JsonObject = {"network": {"name": name, "namespace": name}}
            template = a_template_document()
            member_object(template, "spec")["networkInterfaces"] = [interface]
            await world.create(PROJECT, a_workload_document(f"w{number}", template=template))
        await world.sleep(10)
        for number in range(len(CROOKED)):
            existing = await world.get(PROJECT, WORKLOAD, f"w{number}")
            assert condition_of(existing, "Available")[1] == reasons.NETWORK_NOT_FOUND
        asked = {one.address.resource for one in world.requests() if one.address.plane == PROJECT}
        assert "secrets" not in asked
        assert await world.names(PROJECT, DEPLOYMENT) == []

    play_hub(story)


# --- secrets and bombs ----------------------------------------------------------------------------

CANARY = "hunter2-of-acme"
VALUE_SCHEMA = (
    *("spec", "template", "spec", "runtime", "sandbox", "containers", "[]", "env", "[]", "value"),
)


@pytest.mark.fault("G10")
def test_a_value_that_a_server_repeats_is_passed_on_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(hub: Hub) -> None:
        await hub.world.forbid_long_values(PROJECT, DEPLOYMENT, VALUE_SCHEMA)
        template = a_template_document()
        runtime = member_object(member_object(template, "spec"), "runtime")
        container = member_list(member_object(runtime, "sandbox"), "containers")[0]
        assert isinstance(container, dict)
        container["env"] = [{"name": "PASSWORD", "value": CANARY}]
        await hub.world.create(PROJECT, a_workload_document(template=template))
        await hub.world.sleep(60)
        (reported,) = [one for one in hub.process.recorder.emitted if one.reason == REJECTED]
        assert "env[0].value" in reported.message
        existing = await hub.world.get(PROJECT, WORKLOAD, "web")
        measures = hub.process.measures
        assert CANARY not in str(
            [
                hub.process.recorder.emitted,
                status_of(existing),
                metadata_of(existing),
                measures.counts,
                measures.gauges,
                measures.values,
            ]
        )

    with caplog.at_level(logging.DEBUG):
        play_hub(story)
    assert CANARY not in caplog.text
    assert CANARY not in str([vars(record) for record in caplog.records])


REJECTED = reasons.DEPLOYMENT_REJECTED
BOMBS = (
    "a" * 100_000 + "!",
    "-" * 100_000,
    "a-" * 50_000,
    "." * 100_000,
    "%s" * 50_000,
    "(a+)+$" * 20_000,
    "\u202e" * 100_000,
)


@pytest.mark.fault("G12")
@pytest.mark.fault("S17")
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: repr(bomb[:6]))
def test_a_long_string_in_every_place_is_judged_in_no_time(bomb: str) -> None:
    async def story(hub: Hub) -> None:
        template = a_template_document(networks=(bomb,), annotations={bomb: bomb})
        desired = a_workload_document("web", {bomb: (bomb,)}, template=template)
        began = time.process_time()
        refused = await hub.process.admit(a_review(desired, OF_PROJECT))
        assert isinstance(refused, AdmissionRefused)
        # Linear work takes a hundredth of this; what backtracks does not end on this day.
        assert time.process_time() - began < 2
        assert len(str(refused.status)) < 64 * 1024

    play_hub(story)
