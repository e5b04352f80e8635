from dataclasses import FrozenInstanceError, replace

import pytest

from compute_quota_client import Claim, QuotaError, QuotaUsageError, project_ref
from compute_quota_client.testing import BUCKET_UID, GIB, REGION, a_claim


def a_claim_with(**changes: object) -> Claim:
    # mypy knows the fields of `replace`; what is tested here is what types cannot say.
    return replace(a_claim(), **changes)  # type: ignore[arg-type]  # wrong values are the point


@pytest.mark.spec("Q-06")
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("requests", {}),
        ("requests", {f"storage.example.com/r{n}": 1 for n in range(21)}),
        ("requests", {GIB: 0}),
        ("requests", {GIB: -1}),
        ("requests", {GIB: 2**63}),
        ("requests", {GIB: True}),
        ("requests", {GIB: 1.0}),
        ("requests", {"": 1}),
        ("namespace", ""),
        ("namespace", "Default"),
        ("namespace", "a.b"),
        ("namespace", "a" * 64),
        ("namespace", "../kube-system"),
        ("name", ""),
        ("name", "a/b"),
        ("name", "-a"),
        ("name", "a..b"),
        ("name", "a\n"),
        ("name", "a" * 254),
        ("labels", {"quota.miloapis.com/auto-created": "true"}),
        ("annotations", {"quota.miloapis.com/created-by": "me"}),
        ("owner", {"quota.miloapis.com/auto-created": "true"}),
        ("subject", {"quota.miloapis.com/created-by": "me"}),
        ("labels", {"not a key": "x"}),
        ("labels", {"a/b/c": "x"}),
        ("labels", {"k": "not a value"}),
        ("owner", {REGION: "not a label value"}),
        ("subject", {REGION: "two values"}),
        ("owner", {BUCKET_UID: "two-values"}),
    ],
)
def test_what_no_claim_may_be_is_refused_when_it_is_built(argument: str, value: object) -> None:
    with pytest.raises(QuotaUsageError) as refused:
        a_claim_with(**{argument: value})
    # The argument that is at fault is named; with two values for a key it is the later one.
    assert refused.value.argument in {argument, "subject"}
    assert str(refused.value).startswith(refused.value.argument)


@pytest.mark.spec("Q-06")
def test_the_bounds_themselves_are_allowed() -> None:
    assert a_claim_with(requests={GIB: 1})
    assert a_claim_with(requests={GIB: 2**63 - 1})
    assert a_claim_with(requests={f"storage.example.com/r{n}": 1 for n in range(20)})
    assert a_claim_with(name="a." + "b" * 251)
    assert a_claim_with(namespace="a" * 63)


def test_a_usage_error_is_a_value_error_and_a_quota_error() -> None:
    with pytest.raises(ValueError, match="requests") as refused:
        a_claim_with(requests={})
    assert isinstance(refused.value, QuotaError)


def test_owner_is_written_as_labels_and_subject_as_annotations() -> None:
    claim = a_claim()
    assert claim.written_labels() == {REGION: "lhr"}
    assert claim.written_annotations() == {BUCKET_UID: "uid-1"}


def test_a_key_that_stands_elsewhere_stays_there() -> None:
    claim = replace(a_claim(), labels={BUCKET_UID: "uid-1"}, annotations={REGION: "lhr", "k": "v"})
    assert claim.written_labels() == {BUCKET_UID: "uid-1"}
    assert claim.written_annotations() == {REGION: "lhr", "k": "v"}


def test_a_key_of_owner_and_subject_with_one_value_is_written_once() -> None:
    claim = replace(a_claim(), subject={REGION: "lhr", BUCKET_UID: "uid-1"})
    assert claim.written_labels() == {REGION: "lhr"}
    assert claim.written_annotations() == {BUCKET_UID: "uid-1"}


def test_a_claim_is_for_its_consumer_unless_another_resource_is_named() -> None:
    assert a_claim().claiming_resource == project_ref("acme")
    assert replace(a_claim(), resource=project_ref("x")).claiming_resource == project_ref("x")


def test_a_claim_does_not_follow_the_dict_it_was_built_from() -> None:
    requests = {GIB: 50}
    claim = replace(a_claim(), requests=requests)
    requests[GIB] = 0
    assert claim.requests == {GIB: 50}


def test_a_claim_cannot_be_changed() -> None:
    claim = a_claim()
    with pytest.raises(FrozenInstanceError):
        claim.name = "other"  # type: ignore[misc]  # frozen is what is tested
    with pytest.raises(TypeError):
        claim.requests[GIB] = 0  # type: ignore[index]  # sealed is what is tested


def test_a_project_reference_needs_the_name_of_a_project() -> None:
    with pytest.raises(QuotaUsageError, match="name"):
        project_ref("org/proj")
