from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compute_api_types import names
from compute_api_types.names import (
    DeploymentNames,
    LabelValue,
    NamingError,
    UndecodableIdentityError,
)

# A busy machine makes an example slow, not wrong.
UNHURRIED = settings(deadline=None)

DNS_LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
SUBDOMAINS = (
    st.lists(DNS_LABELS, min_size=1, max_size=4).map(".".join).map(lambda t: t[:253].strip("-."))
)
CITIES = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", fullmatch=True)
UIDS = st.uuids().map(str)
IDENTITIES = st.tuples(SUBDOMAINS.filter(bool), UIDS, DNS_LABELS, CITIES)
# A project is a DNS label; a plane name may have organisations before it.
CLUSTER_NAMES = st.lists(SUBDOMAINS.filter(bool), min_size=1, max_size=3).map("/".join)


def names_of(identity: tuple[str, str, str, str]) -> DeploymentNames:
    workload, uid, placement, city = identity
    return names.derive_deployment_names(
        workload=workload, workload_uid=uid, placement=placement, city_code=city
    )


@given(CLUSTER_NAMES)
@UNHURRIED
def test_a_cluster_name_survives_its_encoding(name: str) -> None:
    encoded = names.encode_cluster_name(name)
    assert names.is_label_value(encoded.value)
    assert names.decode_cluster_name(encoded.value, encoded.full, owner="it") == name


@given(DNS_LABELS)
@UNHURRIED
def test_a_project_survives_its_encoding_and_needs_no_hash_up_to_55_characters(name: str) -> None:
    encoded = names.encode_cluster_name(name)
    decoded = names.decode_cluster_name(encoded.value, encoded.full, owner="it")
    assert names.derive_bare_project(decoded, owner="it") == name
    looks_hashed = encoded.value.startswith("cluster-h-")
    assert (encoded.full is None) or len(name) > 55 or looks_hashed


@given(st.text(), st.text() | st.none())
@UNHURRIED
def test_any_label_decodes_or_is_undecodable(value: str, full: str | None) -> None:
    try:
        decoded = names.decode_cluster_name(value, full, owner="it")
    except UndecodableIdentityError:
        return
    assert decoded


@given(st.text())
@UNHURRIED
def test_any_name_is_encoded_or_refused(name: str) -> None:
    try:
        encoded = names.encode_cluster_name(name)
    except NamingError:
        assert name == "" or "_" in name
        return
    assert len(encoded.value) <= 63


@given(CLUSTER_NAMES, CLUSTER_NAMES)
@UNHURRIED
def test_two_cluster_names_never_share_a_label(one: str, other: str) -> None:
    assume(one != other)
    assert names.encode_cluster_name(one).value != names.encode_cluster_name(other).value


@given(IDENTITIES, st.integers(min_value=0, max_value=999))
@UNHURRIED
def test_derived_names_are_dns_labels_with_their_ordinal(
    identity: tuple[str, str, str, str], ordinal: int
) -> None:
    derived = names_of(identity)
    for name in filter(None, (derived.plain, derived.hashed)):
        assert len(name) <= 52
        instance = names.derive_instance_name(name, ordinal)
        assert names.is_dns_label(instance)
        assert names.parse_ordinal(name, instance) == ordinal
        claim = names.derive_claim_name(instance)
        assert names.parse_claim_name(claim) == instance


def as_identity(identity: tuple[str, str, str, str]) -> tuple[str, str, str]:
    """What a deployment is known by: upper and lower case of a city are one."""
    _, uid, placement, city = identity
    return uid, placement, city.lower()


@given(st.lists(IDENTITIES, min_size=2, max_size=20, unique_by=as_identity))
@UNHURRIED
def test_hashed_names_of_different_identities_never_collide(
    identities: list[tuple[str, str, str, str]],
) -> None:
    hashed = [names_of(identity).hashed for identity in identities]
    assert len(set(hashed)) == len(hashed)


SHARP = st.tuples(st.just("w"), st.sampled_from("ab"), st.sampled_from(["a", "a-a"]), CITIES)


@given(st.lists(SHARP, min_size=2, max_size=20, unique_by=as_identity))
@UNHURRIED
def test_parts_of_an_identity_cannot_be_shifted_into_each_other(
    identities: list[tuple[str, str, str, str]],
) -> None:
    hashed = [names_of(identity).hashed for identity in identities]
    assert len(set(hashed)) == len(hashed)


@given(st.lists(CITIES, min_size=2, max_size=20, unique=True))
@UNHURRIED
def test_second_policy_names_of_different_cities_never_collide(cities: list[str]) -> None:
    second = [names.derive_policy_names(city)[1] for city in cities]
    assert len(set(second)) == len(second)


LABEL_TEXTS = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,250}[A-Za-z0-9])?", fullmatch=True)


@given(LABEL_TEXTS)
@UNHURRIED
def test_a_shortened_value_is_a_label_and_the_full_one_is_kept(text: str) -> None:
    label = names.derive_label_value(text)
    assert names.is_label_value(label.value)
    assert (label.full or label.value) == text


@given(st.lists(LABEL_TEXTS, min_size=2, max_size=20, unique=True))
@UNHURRIED
def test_shortened_values_never_collide(texts: list[str]) -> None:
    values = [names.derive_label_value(text).value for text in texts]
    assert len(set(values)) == len(values)


@given(st.uuids().map(str))
@UNHURRIED
def test_a_hub_namespace_gives_its_uid_back(uid: str) -> None:
    name = names.derive_hub_namespace(uid)
    assert names.is_dns_label(name)
    assert names.parse_hub_namespace(name) == uid


def test_label_values_compare_as_values() -> None:
    assert LabelValue("a") == LabelValue("a", None)
