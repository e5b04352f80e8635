from datetime import UTC, datetime, timedelta, timezone

import pytest

from compute_api_types.meta import (
    API_VERSION,
    GROUP,
    VERSION,
    ObjectMeta,
    OwnerReference,
    PartialObject,
    Resource,
    TimestampError,
    format_timestamp,
    parse_timestamp,
)
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.v1alpha.workload import Workload
from compute_api_types.v1alpha.workload_deployment import WorkloadDeployment
from compute_api_types.wire import JsonObject


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
        ("2026-06-20T11:00:04+02:00", datetime(2026, 6, 20, 9, 0, 4, tzinfo=UTC)),
        ("2026-06-20T09:00:04.250Z", datetime(2026, 6, 20, 9, 0, 4, 250_000, tzinfo=UTC)),
        ("2026-06-20T09:00:04.123456789Z", datetime(2026, 6, 20, 9, 0, 4, 123_456, tzinfo=UTC)),
    ],
)
def test_a_wire_time_is_a_moment(text: str, moment: datetime) -> None:
    assert parse_timestamp(text) == moment


@pytest.mark.parametrize("text", ["", "now", "2026-06-20", "2026-06-20T09:00:00", "x" * 5000])
def test_what_names_no_moment_is_refused(text: str) -> None:
    with pytest.raises(TimestampError, match="must be RFC 3339") as refused:
        parse_timestamp(text)
    assert len(str(refused.value)) < 160


def test_a_moment_is_written_in_utc_with_whole_seconds() -> None:
    there = datetime(2026, 6, 20, 4, 0, 4, 999_999, tzinfo=timezone(timedelta(hours=-5)))
    assert format_timestamp(there) == "2026-06-20T09:00:04Z"


def test_metadata_answers_without_labels_annotations_or_owners() -> None:
    bare = ObjectMeta(name="a")
    assert bare.label("x") is None
    assert bare.annotation("x") is None
    assert bare.controller() is None
    assert not bare.is_terminating


def test_the_controller_is_the_owner_with_that_field_set() -> None:
    plain = OwnerReference(api_version="v1", kind="X", name="x", uid="1")
    controlling = plain.model_copy(update={"uid": "2", "controller": True})
    owned = ObjectMeta(
        name="a",
        labels={"l": "1"},
        annotations={"a": "2"},
        deletion_timestamp="2026-06-20T09:00:00Z",
        owner_references=(plain, controlling),
    )
    assert owned.controller() is controlling
    assert (owned.label("l"), owned.annotation("a")) == ("1", "2")
    assert owned.is_terminating


@pytest.mark.parametrize(
    ("resource", "plural", "singular"),
    [
        (Workload.RESOURCE, "workloads", "workload"),
        (WorkloadDeployment.RESOURCE, "workloaddeployments", "workloaddeployment"),
        (Instance.RESOURCE, "instances", "instance"),
    ],
)
def test_kinds_are_addressed_as_in_the_specification(
    resource: Resource, plural: str, singular: str
) -> None:
    assert (resource.plural, resource.singular) == (plural, singular)
    assert (resource.group, resource.version) == ("compute.datumapis.com", "v1alpha")
    assert resource.api_version == API_VERSION == f"{GROUP}/{VERSION}"
    assert resource.namespaced


def test_the_core_group_has_a_bare_version() -> None:
    assert PartialObject.NAMESPACE.api_version == "v1"
    assert not PartialObject.NAMESPACE.namespaced


def test_any_object_can_be_read_by_its_metadata() -> None:
    document: JsonObject = {
        "kind": "Namespace",
        "metadata": {"name": "ns-1"},
        "spec": {"finalizers": []},
    }
    assert PartialObject.read(document).metadata.name == "ns-1"
