"""Updates: what is read, what is unchanged, which errors count (api.md 12.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from compute_api_types.validation import (
    UNREAD,
    CannotDecide,
    Facts,
    Review,
    needs_locations,
    networks_to_review,
)
from compute_api_types.validation.equality import is_same_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compute_api_types.validation import Document, Json

    Build = Callable[[str, Mapping[str, Json]], Document]
    Judge = Callable[[Document, Document | None, Facts], list[str] | CannotDecide]
    Spell = Callable[[tuple[str, ...]], list[str]]

FACTS: Final = Facts(
    "acme", frozenset({"DFW", "LHR"}), {"default": Review.ALLOWED, "a": Review.ALLOWED}
)
EDIT: Final[Mapping[str, Json]] = {"C.image": "registry.tld/image:new"}


def networks(*names: str) -> dict[str, Json]:
    return {"S.networkInterfaces": [{"network": {"name": name}} for name in names]}


def a_placement(name: str, *cities: str, replicas: int = 1) -> Json:
    return {"name": name, "cityCodes": cities, "scaleSettings": {"minReplicas": replicas}}


def a_secret(name: str, device_name: str | None = None) -> Json:
    disk: Json = {
        "deviceName": device_name,
        "template": {"spec": {"resources": {"requests": {"storage": "10Gi"}}}},
    }
    return {"name": name, "secret": {}} if device_name is None else {"name": name, "disk": disk}


def attached(name: str, path: str) -> Json:
    return {"name": name, "mountPath": path}


def test_only_networks_the_stored_object_does_not_use_are_reviewed(build: Build) -> None:
    wanted = build("sandbox", networks("default", "b", "a", "b", "Not Legal", ""))
    assert networks_to_review(wanted, None) == ("default", "b", "a")
    assert networks_to_review(wanted, build("sandbox", {})) == ("b", "a")


def test_a_network_of_another_namespace_is_no_proof_for_the_own_one(build: Build) -> None:
    stored = build("sandbox", {"S.networkInterfaces[0].network.namespace": "other"})
    wanted = build("sandbox", {"S.networkInterfaces[0].network.namespace": "default"})
    assert networks_to_review(wanted, stored) == ("default",)
    assert networks_to_review(stored, wanted) == ()


def test_locations_are_needed_for_new_cities_only(build: Build) -> None:
    document = build("sandbox", {"P[0].cityCodes": ["DFW", "LHR"]})
    assert needs_locations(document, None)
    assert needs_locations(document, build("sandbox", {}))
    assert not needs_locations(build("sandbox", {}), document)
    assert not needs_locations(build("sandbox", {"P": []}), None)
    # Codes are compared as they are written.
    assert needs_locations(build("sandbox", {"P[0].cityCodes": ["dfw"]}), document)


def test_a_create_without_any_city_is_decided_without_locations(
    build: Build, judge: Judge, spell: Spell
) -> None:
    facts = Facts("acme", UNREAD, {"default": Review.ALLOWED})
    document = build("sandbox", {"P[0].cityCodes": []})
    assert judge(document, None, facts) == spell(("Required P[0].cityCodes",))


def test_known_cities_are_not_held_against_cities_that_were_there(
    build: Build, judge: Judge
) -> None:
    # The placement is renamed, so its error would be another one; Locations are not needed for it.
    stored = build("sandbox", {"P": [a_placement("a", "GONE")]})
    wanted = build("sandbox", {"P": [a_placement("b", "GONE")]})
    assert judge(wanted, stored, FACTS) == []


def test_a_create_is_reviewed_with_any_metadata(build: Build, judge: Judge, spell: Spell) -> None:
    document = build("sandbox", {"metadata.deletionTimestamp": "2026-06-20T09:00:00Z", "P": []})
    assert judge(document, None, FACTS) == spell(("Required spec.placements",))


MOVED: Final[Mapping[str, tuple[dict[str, Json], dict[str, Json]]]] = {
    "placements with one city in two spellings": (
        {"P": [a_placement("a", "DFW"), a_placement("b", "dfw")]},
        {"P": [a_placement("b", "dfw"), a_placement("a", "DFW")]},
    ),
    "two spellings in one placement": (
        {"P[0].cityCodes": ["DFW", "dfw"]},
        {"P[0].cityCodes": ["dfw", "DFW"]},
    ),
    "placements with illegal names and sizes": (
        {"P": [a_placement("A", "DFW", replicas=0), a_placement("", "LHR")]},
        {"P": [a_placement("", "LHR"), a_placement("A", "DFW", replicas=0)]},
    ),
    "attachments at one place": (
        {
            "S.volumes": [a_secret("a"), a_secret("b")],
            "C.volumeAttachments": [attached("a", "/x"), attached("b", "/x")],
        },
        {
            "S.volumes": [a_secret("a"), a_secret("b")],
            "C.volumeAttachments": [attached("b", "/x"), attached("a", "/x")],
        },
    ),
    "volumes with one device name": (
        {
            "S.volumes": [a_secret("a", "x"), a_secret("b", "x")],
            "C.volumeAttachments": [{"name": "a"}, {"name": "b"}],
        },
        {
            "S.volumes": [a_secret("b", "x"), a_secret("a", "x")],
            "C.volumeAttachments": [{"name": "a"}, {"name": "b"}],
        },
    ),
    "containers, their ports and secrets": (
        {
            "S.runtime.sandbox": {
                "containers": [{"name": "A"}, {"name": "b", "ports": [{"name": "B"}, {}]}],
                "imagePullSecrets": [{"name": "x"}, {}],
            }
        },
        {
            "S.runtime.sandbox": {
                "containers": [{"name": "b", "ports": [{}, {"name": "B"}]}, {"name": "A"}],
                "imagePullSecrets": [{}, {"name": "x"}],
            }
        },
    ),
}


@pytest.mark.parametrize(("before", "after"), MOVED.values(), ids=MOVED)
def test_moving_elements_brings_no_error_in(
    before: dict[str, Json], after: dict[str, Json], build: Build, judge: Judge
) -> None:
    stored, wanted = build("sandbox", before), build("sandbox", after)
    facts = Facts("acme", frozenset({"DFW", "LHR", "dfw"}), {"default": Review.ALLOWED})
    assert judge(stored, None, facts), "the example must have an error to move"
    assert judge(wanted, stored, facts) == []
    assert judge(stored, wanted, facts) == []


def test_a_third_of_a_kind_is_an_error_wherever_it_is_put(
    build: Build, judge: Judge, spell: Spell
) -> None:
    facts = Facts("acme", frozenset({"DFW", "dfw", "Dfw"}), {"default": Review.ALLOWED})
    stored = build("sandbox", {"P": [a_placement("a", "DFW"), a_placement("b", "dfw")]})
    first = [a_placement("c", "Dfw"), a_placement("a", "DFW"), a_placement("b", "dfw")]
    assert judge(build("sandbox", {"P": first}), stored, facts) == spell(
        ("Duplicate P[1].cityCodes[0]",)
    )


def test_another_boot_volume_is_judged_though_it_only_moved(
    build: Build, judge: Judge, spell: Spell
) -> None:
    machine = "S.runtime.virtualMachine.volumeAttachments"
    data: dict[str, Json] = {"S.volumes[1]": {"name": "data", "secret": {}}}
    stored = build("vm", {**data, machine: [{"name": "boot"}, {"name": "data"}]})
    wanted = build("vm", {**data, machine: [{"name": "data"}, {"name": "boot"}]})
    assert judge(wanted, stored, FACTS) == spell((f"Required {machine}[0].name",))


def test_a_default_device_name_that_collides_after_a_move_is_an_error(
    build: Build, judge: Judge, spell: Spell
) -> None:
    uses: dict[str, Json] = {"C.volumeAttachments": [{"name": "a"}, {"name": "b"}]}
    one, other = a_secret("a"), a_secret("b", "persistent-disk-1")
    stored = build("sandbox", {**uses, "S.volumes": [one, other]})
    wanted = build("sandbox", {**uses, "S.volumes": [other, one]})
    # At its new place `a` becomes persistent-disk-1, which `b` has already.
    assert judge(stored, None, FACTS) == []
    assert judge(wanted, stored, FACTS) == spell(("Duplicate S.volumes[1].disk.deviceName",))


def test_an_element_that_has_no_name_is_known_by_its_place(
    build: Build, judge: Judge, spell: Spell
) -> None:
    stored = build("sandbox", networks("a", "Not Legal"))
    wanted = build("sandbox", networks("Not Legal", "a"))
    assert judge(wanted, stored, FACTS) == spell(("Invalid S.networkInterfaces[0].network.name",))


def test_an_error_with_another_value_is_another_error(
    build: Build, judge: Judge, spell: Spell
) -> None:
    stored = build("sandbox", {"P[0].scaleSettings.minReplicas": 5000})
    wanted = build("sandbox", {"P[0].scaleSettings.minReplicas": 4000})
    assert judge(wanted, stored, FACTS) == spell(("Invalid P[0].scaleSettings.minReplicas",))


def test_one_amount_in_two_spellings_is_one_error(build: Build, judge: Judge) -> None:
    def sized(storage: Json) -> dict[str, Json]:
        disk: Json = {"template": {"spec": {"resources": {"requests": {"storage": storage}}}}}
        return {
            "S.volumes": [{"name": "a", "disk": disk}],
            "C.volumeAttachments": [{"name": "a"}],
        }

    stored = build("sandbox", sized("1Gi"))
    wanted = build("sandbox", {**sized("1024Mi"), **EDIT, **sized("1024Mi")})
    assert judge(wanted, stored, FACTS) == []
    assert judge(build("sandbox", sized("2Gi")), stored, FACTS) != []


def test_two_errors_of_one_value_are_cancelled_one_by_one(
    build: Build, judge: Judge, spell: Spell
) -> None:
    # 63 characters too long and not a label: the stored object has both, the wanted one as well.
    stored = build("sandbox", {"C.name": "A" * 64})
    assert judge(build("sandbox", {"C.name": "A" * 64, **EDIT}), stored, FACTS) == []
    # Another name is another element, and both errors are new.
    other = build("sandbox", {"C.name": "B" * 64})
    assert judge(other, stored, FACTS) == spell(("Invalid C.name", "Invalid C.name"))


def test_objects_without_spec_are_compared(judge: Judge) -> None:
    assert judge({}, {}, FACTS) == []
    assert judge({"spec": {}}, {}, FACTS) == []
    assert judge({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}, FACTS) == []


def sized(requests: Json) -> Json:
    return {"template": {"spec": {"runtime": {"resources": {"requests": requests}}}}}


def targeted(target: Json) -> Json:
    metrics: Json = [{"resource": {"target": target}}]
    return {"placements": [{"scaleSettings": {"metrics": metrics}}]}


def environment(value_from: Json) -> Json:
    containers: Json = [{"env": [{"valueFrom": value_from}]}]
    return {"template": {"spec": {"runtime": {"sandbox": {"containers": containers}}}}}


def disk(template: Json) -> Json:
    return {"template": {"spec": {"volumes": [{"disk": {"template": template}}]}}}


NESTED: Final = 50_000


def deep() -> Json:
    value: Json = 1
    for _ in range(NESTED):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param({"a": None}, {}, id="null is absent"),
        pytest.param(sized({"cpu": "1"}), sized({"cpu": 1}), id="quantities by value"),
        pytest.param(targeted({"value": "2Gi"}), targeted({"value": "2048Mi"}), id="a target"),
        pytest.param(
            targeted({"averageValue": "1"}), targeted({"averageValue": "1000m"}), id="avg"
        ),
        pytest.param(
            environment({"resourceFieldRef": {"divisor": "1k"}}),
            environment({"resourceFieldRef": {"divisor": "1e3"}}),
            id="a divisor",
        ),
        pytest.param(
            environment({"secretKeyRef": {"key": "a", "name": ""}}),
            environment({"secretKeyRef": {"key": "a"}}),
            id="the default name of a reference",
        ),
        pytest.param({"template": {"metadata": {}}}, {"template": {}}, id="no metadata"),
        pytest.param(
            {"template": {"metadata": {"labels": {}, "creationTimestamp": None, "uid": "x"}}},
            {"template": {}},
            id="metadata of which nothing survives",
        ),
        pytest.param(disk({"metadata": {"name": ""}}), disk({}), id="metadata of a disk"),
        pytest.param({"a": [1, {"b": "c"}]}, {"a": (1, {"b": "c"})}, id="lists"),
        pytest.param({"a": deep()}, {"a": deep()}, id="deeper than Python goes"),
    ],
)
def test_these_specs_mean_the_same(one: Json, other: Json) -> None:
    assert is_same_spec(one, other)
    assert is_same_spec(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({}, None, id="an object and nothing"),
        pytest.param({"a": 1}, {"a": True}, id="one and true"),
        pytest.param({"a": 1}, {"a": "1"}, id="a number and a string"),
        pytest.param({"a": []}, {}, id="an empty list and none"),
        pytest.param({"a": {}}, {}, id="presence matters"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, id="order matters"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, id="length matters"),
        pytest.param({"a": [1]}, {"a": 1}, id="a list and a number"),
        pytest.param({"a": ["b"]}, {"a": "b"}, id="a list and a string"),
        pytest.param({"a": {}}, {"a": []}, id="an object and a list"),
        pytest.param(sized({"cpu": "1"}), sized({"cpu": "2"}), id="another quantity"),
        pytest.param(sized({"cpu": "x"}), sized({"cpu": "1"}), id="no quantity"),
        pytest.param({"a": "1"}, {"a": "1000m"}, id="spellings elsewhere"),
        pytest.param(
            {"template": {"metadata": {"labels": {"a": "b"}}}}, {"template": {}}, id="a label"
        ),
        pytest.param({"metadata": {}}, {}, id="metadata that is not embedded"),
        pytest.param({"a": {"name": ""}}, {"a": {}}, id="a name that is no reference's"),
    ],
)
def test_these_specs_differ(one: Json, other: Json) -> None:
    assert not is_same_spec(one, other)
    assert not is_same_spec(other, one)
