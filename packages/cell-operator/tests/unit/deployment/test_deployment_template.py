"""Instances of another operator, compared with the template by content (cell.md 5.3, OU-03)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from cell_builders.deployments import a_seen, an_instance
from cell_builders.recording import recorded

from compute_api_types import labels
from compute_api_types.crd import derive_crds
from compute_api_types.template_hash import HashVerdict, derive_template_hash, judge_template_hash
from compute_cell_operator.deployment import instance_digest, watches
from compute_cell_operator.deployment.observe import DeploymentContext, ObservedDeployment, observe
from compute_cell_operator.deployment.plan import decide
from compute_cell_operator.deployment.status.counters import count
from compute_cell_operator.deployment.template import (
    SCHEMA_DEFAULTS,
    InstanceRevision,
    derive_revision,
    normalise,
    render,
)
from compute_cell_operator.network.state import NetworkingState
from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_operator_kit.core.json import Json, JsonObject, JsonValue, member_object, member_text
from compute_operator_kit.core.keys import Kind, ObjectKey, Role, Uid
from compute_operator_kit.core.objects import Metadata, Snapshot
from compute_operator_kit.intents.intents import Delete, Ensure
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

(API, EXTRA) = recorded("cell", DEPLOYMENT.kind)
(INSTANCE_0, *_) = recorded("cell", INSTANCE.kind)
TEMPLATE = member_object(member_object(API, "spec"), "template")
SPEC = member_object(INSTANCE_0, "spec")
CURRENT = derive_template_hash(TEMPLATE)
KEPT = InstanceRevision(HashVerdict.CURRENT, is_unmarked=True)
STALE = InstanceRevision(HashVerdict.STALE)


def revision_of(
    spec: JsonObject = SPEC,
    template: JsonObject = TEMPLATE,
    *,
    carried: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> InstanceRevision:
    metadata = Metadata(
        "web-0",
        "ns-1",
        Uid("u"),
        "1",
        labels=carried or {},
        annotations=annotations or {},
    )
    return derive_revision(
        metadata, spec, render(template), lambda recorded: judge_template_hash(recorded, template)
    )


def with_runtime(spec: JsonObject, **members: Json) -> JsonObject:
    return {**spec, "runtime": {**member_object(spec, "runtime"), **members}}


def with_metadata(**members: Json) -> JsonObject:
    return {**TEMPLATE, "metadata": {**members}}


@pytest.mark.spec("OU-03")
def test_a_recorded_instance_is_what_its_recorded_template_renders() -> None:
    for deployment in (API, EXTRA):
        template = member_object(member_object(deployment, "spec"), "template")
        name = member_text(member_object(deployment, "metadata"), "name")
        for instance in recorded("cell", INSTANCE.kind):
            if member_text(member_object(instance, "metadata"), "name").startswith(name):
                assert revision_of(member_object(instance, "spec"), template) == KEPT


@pytest.mark.spec("OU-03")
@pytest.mark.parametrize(
    "spec",
    [
        with_runtime(SPEC, resources={"instanceType": "datumcloud/d1-standard-4"}),
        with_runtime(SPEC, sandbox={"containers": []}),
        {**SPEC, "volumes": [{"name": "data"}]},
        {key: value for key, value in SPEC.items() if key != "networkInterfaces"},
    ],
)
def test_any_other_content_is_stale(spec: JsonObject) -> None:
    assert revision_of(spec) == STALE


@pytest.mark.spec("OU-03")
@pytest.mark.parametrize(
    ("template", "carried", "annotations", "expected"),
    [
        # Foreign ones aside, as the recorded `services.miloapis.com/service-name` is.
        (TEMPLATE, {"services.miloapis.com/service-name": "x"}, {"a/b": "c"}, KEPT),
        (with_metadata(labels={"app": "web"}), {"app": "web"}, {}, KEPT),
        (with_metadata(labels={"app": "web"}), {"app": "api"}, {}, STALE),
        (with_metadata(labels={"app": "web"}), {}, {}, STALE),
        (with_metadata(annotations={"note": "x"}), {}, {"note": "x"}, KEPT),
        (with_metadata(annotations={"note": "x"}), {}, {}, STALE),
        # What only a template gives must be the same both ways.
        (with_metadata(annotations={labels.RESTARTED_AT: "1"}), {}, {}, STALE),
        (TEMPLATE, {}, {labels.RESTARTED_AT: "1"}, STALE),
        (TEMPLATE, {}, {labels.SSH_KEYS: "a:b"}, STALE),
        # Reserved keys of a template reach no Instance.
        (with_metadata(labels={labels.CELL: "x"}), {}, {}, KEPT),
    ],
)
def test_labels_and_annotations_of_the_template_count(
    template: JsonObject,
    carried: dict[str, str],
    annotations: dict[str, str],
    expected: InstanceRevision,
) -> None:
    assert revision_of(template=template, carried=carried, annotations=annotations) == expected


@pytest.mark.spec("OU-03")
def test_spelling_is_no_content() -> None:
    def sized(cpu: Json, memory: Json) -> JsonObject:
        limits: JsonObject = {"cpu": cpu, "memory": memory}
        return {"runtime": {"sandbox": {"containers": [{"resources": {"limits": limits}}]}}}

    assert normalise(sized("1000m", "1024Mi")) == normalise(sized(1, "1Gi"))
    assert normalise(sized("1000m", "1Gi")) != normalise(sized("2", "1Gi"))
    assert normalise(sized("many", "1Gi")) == normalise(sized("many", "1Gi"))
    assert normalise({"a": None, "b": {}, "c": [], "d": ""}) == {}


@pytest.mark.spec("OU-03")
def test_a_schema_default_that_is_not_stated_is_content() -> None:
    def disk(**spec: Json) -> JsonObject:
        return {"volumes": [{"name": "d", "disk": {"template": {"spec": {**spec}}}}]}

    assert normalise(disk()) == normalise(disk(type="pd-standard")) != normalise(disk(type="ssd"))
    assert normalise(disk(type=None)) == normalise(disk())


def defaults_of(
    schema: Mapping[str, JsonValue], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    if schema.get("default"):
        yield path, schema["default"]
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            yield from defaults_of(inner, (*path, name))
    items = schema.get("items")
    if isinstance(items, dict):
        yield from defaults_of(items, (*path, "[]"))


def test_the_defaults_are_those_of_the_crd() -> None:
    (*_, crd) = derive_crds()
    versions = member_object(crd, "spec")["versions"]
    assert isinstance(versions, list)
    assert isinstance(versions[0], dict)
    schema = member_object(member_object(versions[0], "schema"), "openAPIV3Schema")
    spec = member_object(member_object(schema, "properties"), "spec")
    defaults = {path: value for path, value in defaults_of(spec) if path[:1] != ("controller",)}
    known = {
        (*path, key): text for path, texts in SCHEMA_DEFAULTS.items() for key, text in texts.items()
    }
    assert defaults == known != {}


@pytest.mark.spec("OU-03")
def test_an_adopted_instance_is_judged_by_the_recorded_template_alone() -> None:
    marked = {labels.ADOPTED_TEMPLATE_HASH: CURRENT}
    assert revision_of(annotations=marked) == InstanceRevision(HashVerdict.CURRENT)
    edited = with_metadata(labels={})
    assert revision_of(template=edited, annotations=marked) == InstanceRevision(HashVerdict.CURRENT)
    other: JsonObject = {
        **TEMPLATE,
        "spec": with_runtime(member_object(TEMPLATE, "spec"), sandbox={}),
    }
    assert revision_of(template=other, annotations=marked) == STALE
    # A label that the template has lost is an edit too, though content alone could not show it.
    labelled = with_metadata(labels={"app": "web"})
    before = {labels.ADOPTED_TEMPLATE_HASH: derive_template_hash(labelled)}
    assert revision_of(carried={"app": "web"}, annotations=before) == STALE
    newer = {labels.ADOPTED_TEMPLATE_HASH: "v9-0"}
    assert revision_of(annotations=newer) == InstanceRevision(HashVerdict.NOT_JUDGED)


@pytest.mark.spec("OU-03", "C-24")
@pytest.mark.parametrize("recorded_hash", ["v1-0000000000000000", ""])
def test_a_hash_of_ours_and_a_missing_one_are_never_compared_by_content(recorded_hash: str) -> None:
    spec: JsonObject = {**SPEC, "controller": {"templateHash": recorded_hash}}
    marked = {labels.ADOPTED_TEMPLATE_HASH: CURRENT}
    assert revision_of(spec, annotations=marked) == STALE


def test_an_annotation_that_is_no_hash_of_ours_is_as_none() -> None:
    assert revision_of(annotations={labels.ADOPTED_TEMPLATE_HASH: "yes"}) == KEPT


# --- in a reconcile -------------------------------------------------------------------------------


@pytest.mark.spec("OU-03")
def test_the_hash_is_recorded_without_a_restart_and_only_once() -> None:
    marked = an_instance(0)
    unmarked = replace(marked, is_unmarked=True)
    seen = a_seen(unmarked)
    (written,) = decide(seen).plan.intents
    assert isinstance(written, Ensure)
    assert written.uid == unmarked.metadata.uid
    assert written.desired.annotations == {labels.ADOPTED_TEMPLATE_HASH: seen.template_hash}
    assert decide(a_seen(marked)).plan.intents == ()


def observe_recorded(*instances: JsonObject) -> ObservedDeployment:
    """The recorded `api-p-dfw` with these Instances, as a reconcile observes it."""
    namespace = member_text(member_object(API, "metadata"), "namespace")

    def served(kind: Kind, document: JsonObject) -> Snapshot:
        metadata = member_object(document, "metadata")
        key = ObjectKey(CELL, kind, namespace, member_text(metadata, "name"))
        members = {name: member_object(document, name) for name in ("spec", "status")}
        return a_snapshot(key, metadata, **members)

    snapshots = [served(INSTANCE, one) for one in instances]
    stores = [
        a_store(CELL, DEPLOYMENT, [served(DEPLOYMENT, API)], indexes=watches.DEPLOYMENT_INDEXES),
        a_store(CELL, INSTANCE, snapshots, indexes=watches.INSTANCE_INDEXES),
        a_store(CELL, NAMESPACE, [a_snapshot(ObjectKey(CELL, NAMESPACE, "", namespace))]),
    ]
    caches = FakeCaches(stores, {CELL: Role.HOME})
    key = ObjectKey(CELL, DEPLOYMENT, namespace, "api-p-dfw")
    seen = observe(key, caches, DeploymentContext(NetworkingState.OFF))
    assert seen is not None
    return seen


def with_controller(uid: str) -> JsonObject:
    """The first recorded Instance under another owner."""
    metadata = member_object(INSTANCE_0, "metadata")
    owner: JsonObject = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "name": "api-p-dfw",
        "uid": uid,
        "controller": True,
    }
    return {**INSTANCE_0, "metadata": {**metadata, "ownerReferences": [owner]}}


@pytest.mark.spec("OU-03")
def test_a_report_of_their_hash_counts_as_updated_from_the_first_reconcile_on() -> None:
    pair = recorded("cell", INSTANCE.kind)[:2]
    seen = observe_recorded(*pair)
    assert (count(seen).updated, count(seen).ready, count(seen).desired) == (2, 2, 2)
    intents = decide(seen).plan.intents
    assert [type(intent) for intent in intents] == [Ensure, Ensure]


@pytest.mark.spec("OU-03")
def test_a_report_of_another_template_is_not_updated() -> None:
    controller: JsonObject = {"observedTemplateHash": "5"}
    status: JsonObject = {**member_object(INSTANCE_0, "status"), "controller": controller}
    seen = observe_recorded({**INSTANCE_0, "status": status})
    assert count(seen).updated == 0
    assert seen.owned[0].revision is HashVerdict.CURRENT


@pytest.mark.spec("OU-03")
def test_an_instance_of_another_owner_is_not_adopted_and_not_touched() -> None:
    seen = observe_recorded(with_controller("another"), recorded("cell", INSTANCE.kind)[1])
    named = {intent.key.name for intent in decide(seen).plan.intents}
    assert named == {"api-p-dfw-1"}
    assert not [one for one in decide(seen).plan.intents if isinstance(one, Delete)]


@pytest.mark.spec("OU-03")
def test_a_change_of_content_enqueues_the_deployment_while_the_hash_is_not_ours() -> None:
    changed: JsonObject = {**SPEC, "volumes": [{"name": "data"}]}
    values = {
        tuple(instance_digest.index_by_digest(Metadata("a", "b", Uid("u"), "1"), {"spec": spec}))
        for spec in (SPEC, changed)
    }
    assert len(values) == 2
