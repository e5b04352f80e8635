"""ConfigMaps and Secrets of a project on the hub (referenced-data.md 3, 4, 5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from management_builders.documents import (
    a_condition_document,
    a_deployment_document,
    a_document,
)
from management_builders.hub_script import (
    BINDING_OF_WD,
    PROJECT,
    WD,
    WD_READY,
    annotations_of,
    finalizers_of,
    metadata_of,
)
from management_builders.referenced_data import (
    CONFIG_MAPS,
    MARKER,
    SECRETS,
    DataHub,
    an_object,
    play_data,
    start,
)
from management_builders.world import condition_of, settings_of, shown, spec_of, uid_of

from compute_api_types import labels
from compute_management_operator.planes import BINDING, CONFIG_MAP, DEPLOYMENT, HUB, POLICY, SECRET
from compute_operator_kit.client.interface import PAGE_SIZE
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object
from compute_operator_kit.core.keys import Kind, PlaneName
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point

OURS: JsonObject = {labels.REFERENCED_DATA: "true"}
READY = ("True", "Ready")


async def is_delivered(hub: DataHub, kind: Kind, name: str) -> bool:
    return await hub.companion(kind, name) is not None


def gone(hub: DataHub, kind: Kind, name: str) -> Callable[[], Awaitable[bool]]:
    async def is_gone() -> bool:
        return await hub.companion(kind, name) is None

    return is_gone


async def condition(hub: DataHub, name: str = WD) -> tuple[str, str, str]:
    found = condition_of(await hub.world.get(PROJECT, DEPLOYMENT, name), "ReferencedDataReady")
    return found[:3] if found else ("", "", "")


async def reaches(hub: DataHub, reason: str, message: str = "", *, within: float = 5) -> None:
    async def is_so() -> bool:
        stated = await condition(hub)
        return stated[1] == reason and message in stated[2]

    await hub.world.eventually(is_so, within=within)


@pytest.mark.spec("RD-02")
def test_named_objects_are_on_the_hub_once_for_two_cities_and_policies_propagate_them() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(CONFIG_MAPS, "app"))
        await hub.world.create(PROJECT, an_object(SECRETS, "db", type="example.com/own"))
        await hub.deploy("ConfigMap/app", "Secret/db")
        await hub.deploy("ConfigMap/app", "Secret/db", name="web-eu-lhr", city="LHR")
        await hub.federate("plain-us-lax", "LAX")
        await hub.world.sleep(5)
        for kind, name in ((CONFIG_MAPS, "app"), (SECRETS, "db")):
            companion = await hub.companion(kind, name)
            assert companion is not None
            assert metadata_of(companion)["labels"] == OURS
            assert companion["data"] == {"k": MARKER}
            named = annotations_of(companion)[labels.REFERENCED_BY]
            assert named == '["default/web-eu-lhr","default/web-us-dfw"]'
            owners = member_list(metadata_of(companion), "ownerReferences")
            copies = [await hub.copy("web-eu-lhr"), await hub.copy()]
            assert [one["uid"] for one in owners if isinstance(one, dict)] == [
                uid_of(one) for one in copies
            ]
        secret = await hub.companion(SECRETS, "db")
        assert secret is not None
        assert secret["type"] == "example.com/own"
        place = await hub.namespace()
        specs = {
            name: spec_of(await hub.world.get(HUB, POLICY, name, place))
            for name in await hub.policies()
        }
        assert all(len(member_list(spec, "resourceSelectors")) == 1 for spec in specs.values())
        assert [specs[name].get("propagateDeps") for name in ("city-dfw", "city-lhr")] == [True] * 2
        assert "propagateDeps" not in specs["city-lax"]

    play_data(story)


@pytest.mark.spec("RD-03")
def test_a_bare_deployment_shows_its_tokens_and_that_they_are_there() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        await hub.world.sleep(5)
        deployment = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert annotations_of(deployment)[labels.EXPECTED_REFERENCED_DATA] == '["Secret/db"]'
        assert await condition(hub) == (*READY, "All 1 referenced companion(s) are materialised")
        await hub.report(*WD_READY, ready=1)
        await hub.world.sleep(2)
        assert (await condition(hub))[:2] == READY

    play_data(story)


def test_the_request_that_carries_the_spec_carries_the_annotations() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        await hub.world.eventually(hub.has_copy)
        source = await hub.world.get(PROJECT, SECRETS, "db")
        version = f"{uid_of(source)}/{metadata_of(source)['resourceVersion']}"
        assert await hub.stated() == {
            "expected-referenced-data": '["Secret/db"]',
            "expected-referenced-versions": json.dumps(
                {"Secret/db": version}, separators=(",", ":")
            ),
        }

    play_data(story)


@pytest.mark.spec("RD-05")
def test_a_missing_secret_is_an_error_until_it_is_created() -> None:
    async def story(hub: DataHub) -> None:
        await hub.deploy("Secret/db")
        await reaches(hub, "SourceNotFound", 'Secret "db" not found in namespace "default"')
        stated = await hub.stated()
        assert stated["expected-referenced-data"] == '["Secret/db"]'
        assert json.loads(str(stated["referenced-data-error"]))["reason"] == "SourceNotFound"
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await reaches(hub, "Ready")
        assert "referenced-data-error" not in await hub.stated()
        assert "Secret/db" in str((await hub.stated())["expected-referenced-versions"])

    play_data(story)


@pytest.mark.spec("RD-08")
def test_an_edit_follows_without_a_write_to_a_deployment_or_policy() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(CONFIG_MAPS, "app"))
        await hub.deploy("ConfigMap/app")
        await reaches(hub, "Ready")
        await hub.world.sleep(5)
        before = len(hub.world.writes(plane=HUB))
        in_project = len(hub.world.writes(plane=PROJECT))  # of the operator alone
        await hub.world.patch(PROJECT, CONFIG_MAPS, "app", {"data": {"k": "2", "new": "3"}})
        await hub.world.sleep(10)
        companion = await hub.companion(CONFIG_MAPS, "app")
        assert companion is not None
        assert companion["data"] == {"k": "2", "new": "3"}
        assert len(shown(hub.world.writes(plane=HUB)[before:])) == 1
        assert len(hub.world.writes(plane=PROJECT)) == in_project

    play_data(story)


@pytest.mark.spec("RD-09")
def test_companions_go_with_their_last_deployment_and_stay_gone() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(CONFIG_MAPS, "app"))
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("ConfigMap/app", "Secret/db")
        await reaches(hub, "Ready")
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.eventually(gone(hub, CONFIG_MAPS, "app"), within=10)
        await hub.world.eventually(gone(hub, SECRETS, "db"), within=10)
        await hub.world.sleep(30)
        assert await hub.companion(SECRETS, "db") is None
        assert await hub.world.exists(PROJECT, SECRETS, "db")

    play_data(story)


@pytest.mark.spec("RD-10")
def test_a_stranded_companion_is_removed_and_a_foreign_object_never() -> None:
    async def story(hub: DataHub) -> None:
        await hub.federate()
        place = await hub.namespace()
        stranded = an_object(SECRETS, "left")
        metadata_of(stranded).update({"namespace": place, "labels": {**OURS}})
        annotations: JsonObject = {labels.REFERENCED_BY: '["default/nobody"]'}
        metadata_of(stranded)["annotations"] = annotations
        foreign = an_object(SECRETS, "foreign")
        metadata_of(foreign)["namespace"] = place
        await hub.world.create(HUB, stranded)
        await hub.world.create(HUB, foreign)
        await hub.world.eventually(gone(hub, SECRETS, "left"), within=360)
        await hub.world.sleep(360)
        assert await hub.companion(SECRETS, "foreign") is not None

    play_data(story)


@pytest.mark.spec("RD-11")
def test_an_object_that_is_named_no_more_goes_and_the_other_stays() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(CONFIG_MAPS, "app"))
        await hub.world.create(PROJECT, an_object(SECRETS, "pull"))
        await hub.deploy("ConfigMap/app", "Secret/pull")
        await reaches(hub, "Ready")
        await hub.name_anew("ConfigMap/app")
        await hub.world.eventually(gone(hub, SECRETS, "pull"), within=10)
        assert await is_delivered(hub, CONFIG_MAPS, "app")
        assert (await hub.stated())["expected-referenced-data"] == '["ConfigMap/app"]'

    play_data(story)


@pytest.mark.spec("RD-12")
def test_a_foreign_object_of_the_name_is_left_as_it_is() -> None:
    async def story(hub: DataHub) -> None:
        await hub.federate("other-us-dfw")
        foreign = an_object(SECRETS, "db", data={"theirs": MARKER})
        metadata_of(foreign)["namespace"] = await hub.namespace()
        await hub.world.create(HUB, foreign)
        before = await hub.companion(SECRETS, "db")
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        await reaches(hub, "SourceNameTaken", "rename the Secret, or ask the platform")
        await hub.world.sleep(400)
        assert await hub.companion(SECRETS, "db") == before
        await hub.world.delete(HUB, SECRETS, "db", await hub.namespace())
        await reaches(hub, "Ready", within=310)

    play_data(story)


def filled(size: int) -> JsonObject:
    return an_object(CONFIG_MAPS, "app", data={"k": "x" * size})


@pytest.mark.spec("RD-13")
@pytest.mark.parametrize(("size", "reason"), [(262_144, "Ready"), (262_145, "SourceTooLarge")])
def test_256_kib_pass_and_one_byte_more_does_not(size: int, reason: str) -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, filled(size))
        await hub.deploy("ConfigMap/app")
        await reaches(hub, reason)
        if reason != "Ready":
            text = "exceeds per-object size limit (262145 bytes > 262144 bytes)"
            assert text in (await condition(hub))[2]
            assert await hub.companion(CONFIG_MAPS, "app") is None

    play_data(story)


@pytest.mark.spec("RD-13")
def test_optional_objects_are_left_out_where_they_cannot_be_delivered() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, filled(262_145))
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("ConfigMap/app?", "ConfigMap/absent?", "Secret/db?")
        await reaches(hub, "Ready")
        assert (await hub.stated())["expected-referenced-data"] == '["Secret/db"]'

    play_data(story)


@pytest.mark.spec("RD-14")
def test_a_secret_of_another_type_and_an_immutable_one_replaced_follow() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(
            PROJECT, an_object(SECRETS, "db", type="a.example/one", immutable=True)
        )
        await hub.deploy("Secret/db")
        await reaches(hub, "Ready")
        companion = await hub.companion(SECRETS, "db")
        assert companion is not None
        assert "immutable" not in companion
        await hub.world.delete(PROJECT, SECRETS, "db")
        second = an_object(SECRETS, "db", type="a.example/two", data={"n": MARKER})
        await hub.world.create(PROJECT, second)

        async def follows() -> bool:
            found = await hub.companion(SECRETS, "db")
            is_there = found is not None and found["type"] == "a.example/two"
            return is_there and found is not None and found["data"] == {"n": MARKER}

        await hub.world.eventually(follows, within=10)
        await reaches(hub, "Ready")
        source = await hub.world.get(PROJECT, SECRETS, "db")
        assert uid_of(source) in str((await hub.stated())["expected-referenced-versions"])

    play_data(story)


@pytest.mark.spec("RD-15")
def test_a_deleted_source_is_withdrawn_from_the_hub() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        await reaches(hub, "Ready")
        await hub.world.delete(PROJECT, SECRETS, "db")
        await hub.world.eventually(gone(hub, SECRETS, "db"), within=5)
        await reaches(hub, "SourceNotFound")
        assert await hub.has_copy()

    play_data(story)


@pytest.mark.spec("RD-16")
def test_no_label_or_annotation_of_the_source_is_copied() -> None:
    async def story(hub: DataHub) -> None:
        source = an_object(SECRETS, "db")
        named: JsonObject = {"meta.datumapis.com/upstream-namespace": "default", "team": "a"}
        metadata_of(source)["labels"] = named
        applied: JsonObject = {"kubectl.kubernetes.io/last-applied-configuration": MARKER}
        metadata_of(source)["annotations"] = applied
        await hub.world.create(PROJECT, source)
        await hub.deploy("Secret/db")
        await reaches(hub, "Ready")
        companion = await hub.companion(SECRETS, "db")
        assert companion is not None
        assert metadata_of(companion)["labels"] == OURS
        assert set(annotations_of(companion)) == {
            labels.SOURCE_VERSION,
            labels.SOURCE_BYTES,
            labels.REFERENCED_BY,
        }

    play_data(story)


@pytest.mark.spec("RD-18")
def test_annotations_that_a_tenant_writes_change_nothing_on_the_hub() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        await reaches(hub, "Ready")
        await hub.world.sleep(3)
        before, version = await hub.stated(), metadata_of(await hub.copy())["resourceVersion"]
        error: Json = '{"reason":"Mine","message":"mine"}'
        written: JsonObject = {
            labels.EXPECTED_REFERENCED_DATA: "[]",
            labels.REFERENCED_DATA_ERROR: error,
        }
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, {"metadata": {"annotations": written}})
        await hub.world.sleep(10)
        assert await hub.stated() == before
        assert metadata_of(await hub.copy())["resourceVersion"] == version
        shown_now = annotations_of(await hub.world.get(PROJECT, DEPLOYMENT, WD))
        assert shown_now[labels.EXPECTED_REFERENCED_DATA] == '["Secret/db"]'

    play_data(story)


@pytest.mark.spec("RD-20")
def test_a_marker_in_a_secret_is_in_no_log_event_metric_or_cache(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        await reaches(hub, "Ready")
        await hub.world.patch(PROJECT, SECRETS, "db", {"data": {"more": MARKER}})
        await hub.world.sleep(5)
        companion = await hub.companion(SECRETS, "db")
        assert companion is not None
        assert companion["data"] == {"k": MARKER, "more": MARKER}
        planes = hub.process.operator.planes
        for plane in (PlaneName(PROJECT), HUB):
            store = planes.find_store(plane, SECRET)
            assert store is not None
            snapshots = store.snapshots()
            assert isinstance(snapshots, tuple)
            assert [one.metadata.name for one in snapshots] == ["db"]
            assert all(MARKER.encode() not in one.raw for one in snapshots)
        assert planes.find_store(HUB, SECRETS) is None
        assert MARKER not in repr((hub.process.measures, hub.process.spans))
        assert MARKER not in json.dumps(await hub.world.get(PROJECT, DEPLOYMENT, WD))

    with caplog.at_level("DEBUG"):
        play_data(story)
    assert MARKER not in caplog.text
    assert all(MARKER not in repr(vars(record)) for record in caplog.records)


@pytest.mark.spec("RD-23")
def test_a_restart_writes_nothing_and_reads_no_value() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.world.create(PROJECT, an_object(CONFIG_MAPS, "app"))
        await hub.deploy("Secret/db", "ConfigMap/app")
        await reaches(hub, "Ready")
        await hub.report(*WD_READY, ready=1)
        await hub.world.sleep(60)
        await hub.world.rests(30)
        await hub.process.stop()
        hub.world.processes.remove(hub.process)
        before = len(hub.world.writes())
        hub.process = start(hub.world)
        await hub.world.sleep(60)
        assert shown(hub.world.writes()[before:]) == []

    play_data(story)


@pytest.mark.spec("RD-25")
def test_off_reads_nothing_and_needs_no_right() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        await hub.world.eventually(hub.has_copy)
        await hub.world.sleep(5)
        assert await hub.stated() == {}
        assert await hub.companion(SECRETS, "db") is None
        policy = await hub.world.get(HUB, POLICY, "city-dfw", await hub.namespace())
        assert "propagateDeps" not in member_object(policy, "spec")

    play_data(story, on=False)


# --- a plane that refuses to be read --------------------------------------------------------------


def refused(verb: str) -> Fault:
    """Secrets of the project may not be read for a minute."""
    at = Point(plane=PROJECT, verb=verb, kind="Secret", times=0, until=timedelta(seconds=60))
    return Fault("C6", Action.ERROR, at, Parameters(status=403, reason="Forbidden"))


@pytest.mark.spec("RD-05")
@pytest.mark.fault("C6")
def test_a_secret_that_may_not_be_read_is_an_error_until_it_may() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        message = 'not authorized to read Secret "db" in namespace "default"'
        await reaches(hub, "SourceUnauthorized", message)
        stated = await hub.stated()
        assert json.loads(str(stated["referenced-data-error"]))["reason"] == "SourceUnauthorized"
        assert await hub.companion(SECRETS, "db") is None
        # The right is enough; its list shows the Secret within the back-off of the plane.
        await reaches(hub, "Ready", within=120)
        assert "referenced-data-error" not in await hub.stated()

    play_data(story, refused("get"), refused("list"), is_clean=False)


@pytest.mark.spec("RD-05")
@pytest.mark.fault("C6")
@pytest.mark.parametrize("verbs", [("get",), ("get", "list")])
def test_a_right_that_is_granted_later_is_enough(verbs: tuple[str, ...]) -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db")
        await reaches(hub, "SourceUnauthorized")
        await hub.world.sleep(60)  # until the right is there
        await reaches(hub, "Ready", within=8)

    play_data(story, *map(refused, verbs), is_clean=False)


@pytest.mark.spec("RD-05")
@pytest.mark.fault("C6")
def test_secrets_that_may_not_be_read_are_asked_for_at_a_bounded_rate() -> None:
    def gets(hub: DataHub) -> int:
        return reads_of_data(hub, "operator")[PROJECT, "get"]

    async def story(hub: DataHub) -> None:
        await hub.deploy(*(f"Secret/s{number}" for number in range(40)))
        await reaches(hub, "SourceUnauthorized")
        await hub.world.sleep(20)
        before = gets(hub)
        await hub.world.sleep(30)
        # Two a second, and one round more: the reads of forty objects are not spread evenly.
        assert 40 <= gets(hub) - before <= 30 * 2 + 40

    play_data(story, refused("get"), is_clean=False)


@pytest.mark.spec("RD-13")
@pytest.mark.fault("C6")
def test_an_optional_secret_that_may_not_be_read_is_left_out() -> None:
    async def story(hub: DataHub) -> None:
        await hub.world.create(PROJECT, an_object(SECRETS, "db"))
        await hub.deploy("Secret/db?")
        await reaches(hub, "Ready")
        assert (await hub.stated())["expected-referenced-data"] == "[]"

    play_data(story, refused("get"), refused("list"), is_clean=False)


# --- many companions ------------------------------------------------------------------------------

OF_EACH = 50  # objects that one deployment names; a template may name 64
VALUE_BYTES = 4096


async def deliver_many(hub: DataHub, many: int) -> None:
    value = "x" * VALUE_BYTES
    for number in range(many // OF_EACH):
        tokens = [f"ConfigMap/app-{number}-{part}" for part in range(OF_EACH)]
        for token in tokens:
            name = token.partition("/")[2]
            await hub.world.create(PROJECT, an_object(CONFIG_MAPS, name, data={"k": value}))
        await hub.deploy(*tokens, name=f"web-{number}")

    async def are_delivered() -> bool:
        return hub.process.measures.gauges.get(COMPANIONS) == many

    await hub.world.eventually(are_delivered, within=300)
    await hub.world.sleep(60)


COMPANIONS = ("compute_referenced_data_companions", ())


def reads_of_data(hub: DataHub, identity: str) -> Counter[tuple[str, str]]:
    """Reads of ConfigMaps and Secrets by a process, by plane and verb."""
    asked = [one.address for one in hub.world.requests(identity) if not one.address.is_write]
    return Counter(
        (one.plane, one.verb) for one in asked if one.resource in {"configmaps", "secrets"}
    )


@pytest.mark.spec("RD-23")
@pytest.mark.parametrize("many", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_companions_rest_without_writes_and_without_values(many: int) -> None:
    async def story(hub: DataHub) -> None:
        await deliver_many(hub, many)
        assert hub.process.measures.gauges[COMPANIONS] == many
        before = len(hub.world.writes())
        read = reads_of_data(hub, "operator")
        await hub.world.sleep(40 * 60)  # longer than a resync
        assert shown(hub.world.writes()[before:]) == []
        gets = reads_of_data(hub, "operator") - read
        assert sum(number for (_, verb), number in gets.items() if verb == "get") == 0
        assert held_bytes(hub, many) < 2 * many * 1024  # a quarter of the values
        await hub.process.stop()
        hub.world.processes.remove(hub.process)
        settings = settings_of(referencedData="on")
        hub.process = hub.world.process("next", settings=settings, writes_events=True)
        hub.process.start()
        await hub.world.sleep(120)
        assert shown(hub.world.writes("next")) == []
        again = reads_of_data(hub, "next")
        # One metadata list per kind and plane: all pages of the ConfigMaps, one without Secrets.
        pages = -(-many // PAGE_SIZE)
        assert again["acme", "list"] <= pages + 1
        assert again[HUB, "list"] == pages + 1
        assert again["acme", "get"] == again[HUB, "get"] == 0

    play_data(story)


def held_bytes(hub: DataHub, many: int) -> int:
    """All that the caches hold of ConfigMaps, on both planes."""
    held = 0
    for plane in (PlaneName(PROJECT), HUB):
        store = hub.process.operator.planes.find_store(plane, CONFIG_MAP)
        assert store is not None
        snapshots = store.snapshots()
        assert isinstance(snapshots, tuple)
        assert len(snapshots) == many
        held += sum(len(one.raw) for one in snapshots)
    return held


# --- the finalizer of an older operator -----------------------------------------------------------


@pytest.mark.parametrize("on", [True, False])
def test_the_finalizer_of_an_older_operator_is_removed_where_met(on: bool) -> None:
    async def story(hub: DataHub) -> None:
        document = a_deployment_document(WD)
        held: list[Json] = ["a.b/c", labels.REFERENCED_DATA_FINALIZER]
        metadata_of(document)["finalizers"] = held
        await hub.world.create(PROJECT, document)
        await hub.world.eventually(hub.has_copy)
        await hub.world.sleep(5)
        ours: list[Json] = ["a.b/c", labels.FEDERATION_FINALIZER]
        assert finalizers_of(await hub.world.get(PROJECT, DEPLOYMENT, WD)) == ours
        again: list[Json] = [labels.REFERENCED_DATA_FINALIZER, *ours]
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, {"metadata": {"finalizers": again}})
        await hub.world.sleep(5)
        assert finalizers_of(await hub.world.get(PROJECT, DEPLOYMENT, WD)) == ours
        await hub.report(*WD_READY, ready=1)
        await hub.world.sleep(60)
        before = len(hub.world.writes())
        await hub.world.sleep(3600)
        assert shown(hub.world.writes()[before:]) == []

    play_data(story, on=on)


def test_a_deployment_that_only_an_older_operator_held_goes() -> None:
    async def story(hub: DataHub) -> None:
        await hub.process.stop()
        hub.world.processes.remove(hub.process)
        document = a_deployment_document(WD)
        held: list[Json] = [labels.REFERENCED_DATA_FINALIZER]
        metadata_of(document)["finalizers"] = held
        await hub.world.create(PROJECT, document)
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        hub.process = start(hub.world)

        async def is_gone() -> bool:
            return not await hub.world.exists(PROJECT, DEPLOYMENT, WD)

        await hub.world.eventually(is_gone)
        assert not await hub.has_copy()

    play_data(story)


# --- distribution by Karmada ----------------------------------------------------------------------

WD_WAITING = a_condition_document(
    "Ready",
    "False",
    "ReferencedDataNotReady",
    'Instance "web-us-dfw-0": Waiting for 1 companion(s)',
)
UNDISTRIBUTED = ("compute_referenced_data_undistributed", ())


def binding_reads(hub: DataHub) -> int:
    asked = [one.address for one in hub.world.requests()]
    return sum(one.resource == "resourcebindings" for one in asked)


async def wait_for_data(hub: DataHub) -> None:
    await hub.world.create(PROJECT, an_object(SECRETS, "db"))
    await hub.deploy("Secret/db")
    await reaches(hub, "Ready")
    await hub.report(WD_WAITING)
    place = await hub.namespace()
    resource: JsonObject = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "name": WD,
        "namespace": place,
    }
    bound = a_document(BINDING, BINDING_OF_WD, place, spec={"resource": resource})
    await hub.world.create(HUB, bound)


def test_data_that_karmada_does_not_distribute_is_counted_after_five_minutes() -> None:
    async def story(hub: DataHub) -> None:
        await wait_for_data(hub)
        gauges, before = hub.process.measures.gauges, binding_reads(hub)
        await hub.world.sleep(290)
        assert (gauges[UNDISTRIBUTED], binding_reads(hub)) == (0, before)
        await hub.world.sleep(25)
        assert (gauges[UNDISTRIBUTED], binding_reads(hub)) == (1, before + 1)
        await hub.world.sleep(240)
        assert binding_reads(hub) == before + 1
        recorded: JsonObject = {"metadata": {"annotations": {labels.KARMADA_DEPENDENCIES: "[]"}}}
        await hub.world.patch(HUB, BINDING, BINDING_OF_WD, recorded, await hub.namespace())
        await hub.world.sleep(70)
        assert (gauges[UNDISTRIBUTED], binding_reads(hub)) == (0, before + 2)

    play_data(story)


def test_a_copy_that_waits_no_more_is_counted_no_more() -> None:
    async def story(hub: DataHub) -> None:
        await wait_for_data(hub)
        gauges = hub.process.measures.gauges
        await hub.world.sleep(320)
        assert gauges[UNDISTRIBUTED] == 1
        await hub.report(*WD_READY, ready=1)
        await hub.world.sleep(10)
        assert gauges[UNDISTRIBUTED] == 0
        reads = binding_reads(hub)
        await hub.world.sleep(900)
        assert binding_reads(hub) == reads

    play_data(story)


def test_a_binding_that_cannot_be_read_keeps_no_deployment_waiting() -> None:
    at = Point(plane=HUB, verb="get", kind="ResourceBinding", times=0)
    parameters = Parameters(status=503, reason="ServiceUnavailable")
    broken = Fault("bindings", Action.ERROR, at, parameters)

    async def story(hub: DataHub) -> None:
        await wait_for_data(hub)
        await hub.world.sleep(320)
        assert hub.process.measures.gauges[UNDISTRIBUTED] == 0
        await hub.name_anew("Secret/db", "ConfigMap/absent?")
        await hub.world.sleep(5)
        shown_now = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        generation = metadata_of(shown_now)["generation"]
        stamped = annotations_of(await hub.copy())[labels.PROJECT_GENERATION]
        assert stamped == str(generation)

    play_data(story, broken, is_clean=False)
