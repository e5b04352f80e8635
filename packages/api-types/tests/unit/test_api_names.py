from hashlib import sha256

import pytest

from compute_api_types import labels, names
from compute_api_types.names import (
    DeploymentNames,
    LabelValue,
    NamingError,
    UndecodableIdentityError,
)

UID = "6d0f6c0e-6f5e-4c3b-9a0a-1f2d3c4b5a69"
LONG_PROJECT = "north-american-retail-storefront-production-environment-two"


def deployment_names(
    workload: str = "shop", placement: str = "texas", city: str = "DFW", uid: str = UID
) -> DeploymentNames:
    return names.derive_deployment_names(
        workload=workload, workload_uid=uid, placement=placement, city_code=city
    )


# --- deployments ----------------------------------------------------------------------------------


def test_a_short_deployment_name_is_workload_placement_and_city_in_lower_case() -> None:
    assert deployment_names("shop", "texas", "DFW").plain == "shop-texas-dfw"
    assert deployment_names("my.shop", "texas", "New York").plain == "my-shop-texas-new-york"


@pytest.mark.spec("M-03")
def test_52_characters_stay_plain_and_53_are_hashed_and_both_leave_room_for_an_ordinal() -> None:
    at_limit = deployment_names("w" * 42, "texas", "DFW")
    assert at_limit.plain == f"{'w' * 42}-texas-dfw"
    assert len(f"{'w' * 42}-texas-dfw") == 52
    above = deployment_names("w" * 43, "texas", "DFW")
    assert above.plain is None
    assert len(above.hashed) == 52
    for name in (f"{'w' * 42}-texas-dfw", at_limit.hashed, above.hashed):
        assert len(names.derive_instance_name(name, 999)) <= 63


@pytest.mark.spec("M-04")
def test_the_hash_covers_uid_placement_and_city_but_not_its_case() -> None:
    wanted = sha256(f"{UID}\0texas\0dfw".encode()).hexdigest()[:10]
    assert deployment_names().hashed == f"shop-texas-dfw-{wanted}"
    assert deployment_names(city="dfw").hashed == deployment_names(city="DFW").hashed
    others = {
        deployment_names(uid="other").hashed,
        deployment_names(placement="ohio").hashed,
        deployment_names(city="LHR").hashed,
        deployment_names().hashed,
    }
    assert len(others) == 4


@pytest.mark.spec("M-04")
def test_no_dash_stands_before_the_dash_of_the_hash() -> None:
    hashed = deployment_names(f"{'w' * 40}-", "texas", "DFW").hashed
    assert hashed.startswith(f"{'w' * 40}-")
    assert hashed[41] != "-"


def test_workloads_that_would_share_a_plain_name_differ_in_the_hashed_one() -> None:
    one = deployment_names("a-b", "c", "DFW", uid="1")
    other = deployment_names("a", "b-c", "DFW", uid="2")
    assert one.plain == other.plain
    assert one.hashed != other.hashed


@pytest.mark.parametrize("empty", ["workload", "placement", "city", "uid"])
def test_an_identity_with_an_empty_part_has_no_name(empty: str) -> None:
    with pytest.raises(NamingError, match="must be set"):
        deployment_names(**{empty: ""})


# --- instances ------------------------------------------------------------------------------------


def test_an_instance_is_its_deployment_and_an_ordinal() -> None:
    assert names.derive_instance_name("shop-texas-dfw", 0) == "shop-texas-dfw-0"
    with pytest.raises(NamingError, match="ordinal -1 is negative"):
        names.derive_instance_name("shop-texas-dfw", -1)


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        ("wd-0", 0),
        ("wd-12", 12),
        ("wd-01", None),
        ("wd-x", None),
        ("wd-", None),
        ("wd", None),
        ("wd--1", None),
        ("other-1", None),
        ("wd-1-2", None),
        ("wd-99999999999", None),
        ("wd-²", None),
    ],
)
def test_a_name_of_another_form_is_no_slot(name: str, ordinal: int | None) -> None:
    assert names.parse_ordinal("wd", name) == ordinal


def test_the_last_dash_divides_deployment_and_ordinal() -> None:
    assert names.parse_instance_name("a-1-2") == ("a-1", 2)
    assert names.parse_instance_name("-1") is None


# --- what goes with them --------------------------------------------------------------------------


def test_a_hub_namespace_carries_the_uid_of_the_project_namespace() -> None:
    assert names.derive_hub_namespace(UID) == f"ns-{UID}"
    assert names.parse_hub_namespace(f"ns-{UID}") == UID


@pytest.mark.parametrize(
    "name", ["default", "ns-", "ns-1", f"ns-{UID.upper()}", f"ns-{UID}-", f"xs-{UID}", UID, "ns"]
)
def test_any_other_namespace_is_no_hub_namespace(name: str) -> None:
    assert names.parse_hub_namespace(name) is None


@pytest.mark.spec("M-02")
@pytest.mark.parametrize(
    ("code", "base"),
    [
        ("LAX", "city-lax"),
        ("lax", "city-lax"),
        ("New York", "city-new-york"),
        ("LOS ANGELES", "city-los-angeles"),
        ("SEA", "city-sea"),
    ],
)
def test_a_policy_is_named_after_its_city(code: str, base: str) -> None:
    digest = sha256(code.encode()).hexdigest()[:8]
    assert names.derive_policy_names(code) == (base, f"{base}-{digest}")


@pytest.mark.spec("M-02")
def test_an_empty_city_has_no_policy() -> None:
    with pytest.raises(NamingError, match="city code must be set"):
        names.derive_policy_names("")


def test_network_objects_and_claims_are_named_after_what_they_serve() -> None:
    assert names.derive_network_binding_name("shop-texas-dfw", 1) == "shop-texas-dfw-net-1"
    assert names.derive_subnet_claim_name("default--us-dallas-1") == "default--us-dallas-1-0"
    assert names.derive_claim_name("shop-texas-dfw-0") == "instance-shop-texas-dfw-0"
    assert names.parse_claim_name("instance-shop-texas-dfw-0") == "shop-texas-dfw-0"


@pytest.mark.parametrize("name", ["instance-", "instance", "instances-a-0", "a-instance-0", ""])
def test_a_claim_of_another_form_is_not_ours(name: str) -> None:
    assert names.parse_claim_name(name) is None


# --- label values ---------------------------------------------------------------------------------


def test_63_characters_are_a_label_and_64_are_shortened() -> None:
    assert names.derive_label_value("x" * 63) == LabelValue("x" * 63)
    shortened = names.derive_label_value("x" * 64)
    assert shortened.full == "x" * 64
    assert len(shortened.value) == 63


def test_a_long_value_is_shortened_as_the_specification_shows() -> None:
    full = "a-very-long-workload-name-that-nobody-should-choose-but-the-api-server-accepts-it"
    assert names.derive_label_value(full) == LabelValue(
        "a-very-long-workload-name-that-nobody-shou-17a842b1a62774ebd394", full
    )


def test_a_shortened_value_does_not_end_its_front_in_a_separator() -> None:
    full = f"{'x' * 39}-_.{'y' * 40}"
    digest = sha256(full.encode()).hexdigest()[:20]
    assert names.derive_label_value(full).value == f"{'x' * 39}-{digest}"


@pytest.mark.spec("M-01")
@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("datum-cloud", LabelValue("cluster-datum-cloud")),
        ("org/project", LabelValue("cluster-org_project")),
        ("single", LabelValue("cluster-single")),
        (LONG_PROJECT, LabelValue("cluster-h-b5aece8171cd0e48c3f2", LONG_PROJECT)),
        (
            "h-0123456789abcdef0123",
            LabelValue("cluster-h-cb7ac4d4ca5ce88e7424", "h-0123456789abcdef0123"),
        ),
        ("a/b/c", LabelValue("cluster-a_b_c")),
        ("p" * 55, LabelValue(f"cluster-{'p' * 55}")),
    ],
)
def test_cluster_names_are_encoded_as_the_specification_shows(
    name: str, encoded: LabelValue
) -> None:
    assert names.encode_cluster_name(name) == encoded
    assert names.decode_cluster_name(encoded.value, encoded.full, owner="it") == name


@pytest.mark.parametrize("name", ["", "a_b"])
def test_a_name_that_could_not_be_decoded_is_not_encoded(name: str) -> None:
    with pytest.raises(NamingError, match="must not be empty or contain '_'"):
        names.encode_cluster_name(name)


def project_of(value: str | None, full: str | None = None) -> str:
    key = labels.UPSTREAM_CLUSTER_NAME
    return names.decode_project(
        {key: value} if value is not None else None,
        {key: full} if full is not None else None,
        owner="Namespace 'ns-1'",
    )


@pytest.mark.spec("M-01")
@pytest.mark.parametrize(
    ("value", "project"),
    [
        ("cluster-org_project", "project"),
        ("cluster-_test-project-abc", "test-project-abc"),
        ("cluster-test-project-cluster", "test-project-cluster"),
        ("cluster-a_b_c", "c"),
    ],
)
def test_the_project_is_the_last_segment(value: str, project: str) -> None:
    assert project_of(value) == project


@pytest.mark.spec("M-01")
@pytest.mark.parametrize(
    ("value", "full"),
    [
        ("cluster-", None),
        ("datum-cloud", None),
        ("cluster-h-b5aece8171cd0e48c3f2", None),
        ("cluster-h-b5aece8171cd0e48c3f2", ""),
        ("cluster-h-b5aece8171cd0e48c3f2", "another-name"),
        ("cluster-org_", None),
        ("", None),
        (None, None),
    ],
)
def test_what_is_undecodable_is_an_error_that_names_object_and_label(
    value: str | None, full: str | None
) -> None:
    with pytest.raises(UndecodableIdentityError) as refused:
        project_of(value, full)
    assert refused.value.owner == "Namespace 'ns-1'"
    assert refused.value.label == "meta.datumapis.com/upstream-cluster-name"
    assert "Namespace 'ns-1'" in str(refused.value)
    assert "meta.datumapis.com/upstream-cluster-name" in str(refused.value)


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dns", "label", "routable"),
    [
        ("dfw", True, True, True),
        ("DFW", False, True, True),
        ("a.b", False, True, True),
        ("", False, True, False),
        ("New York", False, False, False),
        ("-a", False, False, False),
        ("a-", False, False, False),
        ("a\n", False, False, False),
        ("x" * 63, True, True, True),
        ("x" * 64, False, False, False),
        ("x" * 300, False, False, False),
    ],
)
def test_words_are_judged_whole(text: str, dns: bool, label: bool, routable: bool) -> None:
    assert names.is_dns_label(text) is dns
    assert names.is_label_value(text) is label
    assert names.is_routable_city(text) is routable


def test_a_fingerprint_rests_on_four_labels_in_their_order() -> None:
    object_labels = {
        labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
        labels.UPSTREAM_NAMESPACE: "default",
        labels.WORKLOAD_DEPLOYMENT_NAME: "shop-texas-dfw",
        labels.CELL: "dfw-1",
    }
    text = "".join(f"{key}={value};" for key, value in object_labels.items())
    wanted = sha256(text.encode()).hexdigest()[:16]
    assert names.derive_quarantine_fingerprint(object_labels) == wanted
    assert names.derive_quarantine_fingerprint({**object_labels, "app": "x"}) == wanted
    assert names.derive_quarantine_fingerprint(object_labels | {labels.CELL: "lhr-1"}) != wanted
    assert names.derive_quarantine_fingerprint(None) == names.derive_quarantine_fingerprint({})


def test_names_with_lone_surrogates_are_named_without_a_traceback() -> None:
    assert names.encode_cluster_name("\ud800" * 60).value.startswith("cluster-h-")
    assert deployment_names("\ud800").plain == "--texas-dfw"


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("compute-cell-dfw-1", "dfw-1"),
        ("compute-cell-", None),
        ("compute-cell-DFW", None),
        ("dfw-1", None),
        ("other-compute-cell-dfw-1", None),
    ],
)
def test_a_lease_names_its_cell(name: str, cell: str | None) -> None:
    assert names.parse_cell_lease(name) == cell
    assert names.parse_cell_lease(names.derive_cell_lease("dfw-1")) == "dfw-1"
