"""Admission of ConfigMaps and Secrets that a template names (referenced-data.md 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import pytest

from compute_api_types.validation import (
    DATA_NOT_DELIVERED,
    CannotDecide,
    Facts,
    Review,
    derive_denial,
    references_to_review,
    review_deployment,
    warnings,
)

if TYPE_CHECKING:
    from compute_api_types.validation import Document, Json

    Build = Callable[[str, Mapping[str, Json]], Document]
    Judge = Callable[[Document, Document | None, Facts], "list[str] | CannotDecide"]
    Spell = Callable[[tuple[str, ...]], list[str]]

CITIES: Final = frozenset({"DFW"})
NETWORK: Final = {"default": Review.ALLOWED}
LONGEST: Final = "a" * 243


OFF: Final = Facts("acme", CITIES, NETWORK)


def allowed(wanted: Document, stored: Document | None = None) -> Facts:
    """Data is delivered, and every review that is made is allowed."""
    made = references_to_review(wanted, stored)
    return Facts("acme", CITIES, NETWORK, {one.token: Review.ALLOWED for one in made})


def with_volume(**source: Json) -> dict[str, Json]:
    return {
        "S.volumes": [{"name": "v", **source}],
        "C.volumeAttachments": [{"name": "v", "mountPath": "/v"}],
    }


def with_variable(**source: Json) -> dict[str, Json]:
    return {"C.env": [{"name": "V", "valueFrom": source}]}


def with_secrets(*names: str) -> dict[str, Json]:
    return {"C.envFrom": [{"secretRef": {"name": name}} for name in names]}


VOLUME: Final = "S.volumes[0]"
FROM: Final = "C.env[0].valueFrom"
ITEM: Final = {"key": "k", "path": "a/b"}
CASES: Final[Mapping[str, tuple[dict[str, Json], tuple[str, ...]]]] = {
    "items of a ConfigMap": (with_volume(configMap={"name": "c", "items": [ITEM]}), ()),
    "items of a Secret": (with_volume(secret={"secretName": "s", "items": [ITEM]}), ()),
    "Secret volume without a name": (
        with_volume(secret={"optional": True}),
        (f"Required {VOLUME}.secret.secretName",),
    ),
    "mode of a Secret volume": (
        with_volume(secret={"secretName": "s", "defaultMode": 512}),
        (f"Invalid {VOLUME}.secret.defaultMode",),
    ),
    "empty item": (
        with_volume(configMap={"name": "c", "items": [{}]}),
        (
            f"Required {VOLUME}.configMap.items[0].key",
            f"Required {VOLUME}.configMap.items[0].path",
        ),
    ),
    "absolute path": (
        with_volume(secret={"secretName": "s", "items": [{**ITEM, "path": "/etc"}]}),
        (f"Invalid {VOLUME}.secret.items[0].path",),
    ),
    "path that leaves the mount": (
        with_volume(secret={"secretName": "s", "items": [{**ITEM, "path": "a/../../b"}]}),
        (f"Invalid {VOLUME}.secret.items[0].path",),
    ),
    "dots in a file name": (
        with_volume(secret={"secretName": "s", "items": [{**ITEM, "path": "..a/b.."}]}),
        (),
    ),
    "mode of an item": (
        with_volume(secret={"secretName": "s", "items": [{**ITEM, "mode": -1}]}),
        (f"Invalid {VOLUME}.secret.items[0].mode",),
    ),
    "second source of a volume": (
        with_volume(configMap={"name": "c"}, secret={}),
        (f"Forbidden {VOLUME}.secret",),
    ),
    "name of a ConfigMap volume": (
        with_volume(configMap={"name": "C"}),
        (f"Invalid {VOLUME}.configMap.name",),
    ),
    "variable without a source": (with_variable(), (f"Required {FROM}",)),
    "variable with two sources": (
        with_variable(fieldRef={"fieldPath": "x"}, secretKeyRef={"name": "s", "key": "k"}),
        (f"Forbidden {FROM}.fieldRef",),
    ),
    "variable without name and key": (
        with_variable(secretKeyRef={}),
        (f"Required {FROM}.secretKeyRef.name", f"Required {FROM}.secretKeyRef.key"),
    ),
    "variable of a wrong name": (
        with_variable(configMapKeyRef={"name": "a..b", "key": "k"}),
        (f"Invalid {FROM}.configMapKeyRef.name",),
    ),
    "variable": (with_variable(configMapKeyRef={"name": "a.b", "key": "k"}), ()),
    "envFrom without a source": ({"C.envFrom": [{}]}, ("Required C.envFrom[0]",)),
    "envFrom with both sources": (
        {"C.envFrom": [{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}]},
        ("Forbidden C.envFrom[0].secretRef",),
    ),
    "envFrom without a name": (
        {"C.envFrom": [{"configMapRef": {"name": ""}}]},
        ("Required C.envFrom[0].configMapRef.name",),
    ),
    "prefix": (
        {"C.envFrom": [{"prefix": "1A", "configMapRef": {"name": "c"}}]},
        ("Invalid C.envFrom[0].prefix",),
    ),
    "empty prefix": ({"C.envFrom": [{"prefix": "", "configMapRef": {"name": "c"}}]}, ()),
    "longest name": (with_secrets(LONGEST), ()),
    "name too long": (
        with_secrets(f"{LONGEST}a"),
        ("Invalid C.envFrom[0].secretRef.name",),
    ),
    "reserved name": (
        {"S.runtime.sandbox.imagePullSecrets": [{"name": "kube-root-ca.crt"}]},
        ("Forbidden S.runtime.sandbox.imagePullSecrets[0].name",),
    ),
    "as many objects as allowed": (with_secrets(*(f"s{at}" for at in range(64))), ()),
    "too many objects": (with_secrets(*(f"s{at}" for at in range(65))), ("Invalid S",)),
}


@pytest.mark.parametrize("case", CASES)
def test_rules_apply_where_data_is_delivered(
    case: str, build: Build, judge: Judge, spell: Spell
) -> None:
    changes, expected = CASES[case]
    wanted = build("sandbox", changes)
    assert judge(wanted, None, allowed(wanted)) == spell(expected)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in {"items of a ConfigMap", "empty item"}]
)
@pytest.mark.spec("RD-25")
def test_no_new_rule_applies_where_data_is_not_delivered(
    case: str, build: Build, judge: Judge, spell: Spell
) -> None:
    changes, _ = CASES[case]
    before = (f"Forbidden {VOLUME}.secret",) if case == "second source of a volume" else ()
    assert judge(build("sandbox", changes), None, OFF) == spell(before)


def test_items_of_a_config_map_are_refused_as_before_where_data_is_not_delivered(
    build: Build, judge: Judge, spell: Spell
) -> None:
    wanted = build("sandbox", with_volume(configMap={"name": "c", "items": [ITEM]}))
    assert judge(wanted, None, OFF) == spell((f"Forbidden {VOLUME}.configMap.items",))


def test_a_user_is_warned_where_data_is_not_delivered(build: Build) -> None:
    wanted = build("sandbox", with_secrets("s"))
    assert warnings(wanted) == (DATA_NOT_DELIVERED,)
    assert warnings(wanted, delivers_data=True) == ()
    assert warnings(build("sandbox", {})) == ()


def on(**reviews: Review) -> Facts:
    return Facts("acme", CITIES, NETWORK, {f"Secret/{name}": one for name, one in reviews.items()})


@pytest.mark.spec("RD-17")
def test_a_user_without_the_right_to_read_is_refused(
    build: Build, judge: Judge, spell: Spell
) -> None:
    wanted = build("sandbox", with_secrets("a", "b"))
    facts = on(a=Review.ALLOWED, b=Review.DENIED)
    assert judge(wanted, None, facts) == spell(("Forbidden S.secrets[b]",))
    stored = build("sandbox", with_secrets("a"))
    assert judge(wanted, stored, facts) == spell(("Forbidden S.secrets[b]",))


def test_a_config_map_is_named_at_a_path_of_its_own(
    build: Build, judge: Judge, spell: Spell
) -> None:
    wanted = build("sandbox", {"C.envFrom": [{"configMapRef": {"name": "c"}}]})
    facts = Facts("acme", CITIES, NETWORK, {"ConfigMap/c": Review.DENIED})
    assert judge(wanted, None, facts) == spell(("Forbidden S.configmaps[c]",))


@pytest.mark.spec("RD-17")
def test_an_unrelated_edit_needs_no_right(build: Build, judge: Judge) -> None:
    stored = build("sandbox", with_secrets("a"))
    wanted = build("sandbox", {**with_secrets("a"), "C.image": "other"})
    assert references_to_review(wanted, stored) == ()
    assert judge(wanted, stored, on(a=Review.DENIED)) == []


@pytest.mark.spec("RD-17")
@pytest.mark.parametrize("reviews", [{}, {"a": Review.FAILED}])
def test_a_right_that_cannot_be_checked_decides_nothing(
    reviews: Mapping[str, Review], build: Build, judge: Judge
) -> None:
    outcome = judge(build("sandbox", with_secrets("a")), None, on(**reviews))
    assert outcome == CannotDecide(
        'your right to read "Secret/a" could not be checked, try again', 500
    )


def test_a_definite_error_comes_before_a_review_that_failed(
    build: Build, judge: Judge, spell: Spell
) -> None:
    wanted = build("sandbox", with_secrets("a", "b"))
    facts = on(a=Review.FAILED, b=Review.DENIED)
    assert judge(wanted, None, facts) == spell(("Forbidden S.secrets[b]",))


def test_reviews_are_bounded_and_what_is_not_reviewed_is_refused(
    build: Build, judge: Judge, spell: Spell
) -> None:
    # Stored while data was not delivered: the error of rule 78 is not a new one.
    stored = build("sandbox", with_secrets(*(f"a{at:02}" for at in range(65))))
    wanted = build("sandbox", with_secrets(*(f"b{at:02}" for at in range(65))))
    asked = references_to_review(wanted, stored)
    assert [one.name for one in asked] == [f"b{at:02}" for at in range(64)]
    assert judge(wanted, stored, allowed(wanted, stored)) == spell(("Invalid S",))


def test_more_than_allowed_may_stay_where_it_is_stored(build: Build, judge: Judge) -> None:
    names = [f"a{at:02}" for at in range(65)]
    stored = build("sandbox", with_secrets(*names))
    wanted = build("sandbox", with_secrets(*names[1:], "new"))
    assert judge(wanted, stored, allowed(wanted, stored)) == []


@pytest.mark.spec("RD-17")
def test_a_bare_deployment_needs_the_same_rights_and_nothing_else() -> None:
    def a_deployment(*names: str, image: str = "") -> Document:
        sources: list[Json] = [{"secretRef": {"name": name}} for name in names]
        container: Json = {"name": "NOT A LABEL", "image": image, "envFrom": sources}
        spec: Json = {"runtime": {"sandbox": {"containers": [container]}}}
        return {"metadata": {"name": "wd"}, "spec": {"template": {"spec": spec}}}

    wanted = a_deployment("a", "b")
    reviews = {"Secret/a": Review.ALLOWED, "Secret/b": Review.ALLOWED}
    assert review_deployment(wanted, None, reviews) == ()
    refused = review_deployment(wanted, None, {**reviews, "Secret/b": Review.DENIED})
    assert isinstance(refused, tuple)
    assert [error.path.text for error in refused] == ["spec.template.spec.secrets[b]"]
    denial = derive_denial(wanted, refused, kind="WorkloadDeployment")
    assert denial.message.startswith('WorkloadDeployment.compute.datumapis.com "wd" is invalid')
    assert isinstance(denial.as_status()["details"], dict)
    assert review_deployment(wanted, a_deployment("a", "b", image="x"), {}) == ()
    assert isinstance(review_deployment(wanted, a_deployment("a"), {}), CannotDecide)
    crowd = a_deployment(*(f"s{at}" for at in range(65)))
    made = {one.token: Review.ALLOWED for one in references_to_review(crowd, None)}
    many = review_deployment(crowd, None, made)
    assert isinstance(many, tuple)
    assert [error.path.text for error in many] == ["spec.template.spec"]
