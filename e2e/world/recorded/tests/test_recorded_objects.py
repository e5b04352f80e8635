"""Renaming a recorded object replaces every name and UID and nothing else."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from e2e.world.kinds import CLAIM, DEPLOYMENT, INSTANCE, NAMESPACE, WORKLOAD, Kind
from e2e.world.objects import (
    annotations_of,
    is_deleting,
    labels_of,
    name_of,
    object_at,
    objects_at,
    owners_of,
)
from e2e.world.recorded.reading import (
    CELL_PLANE,
    DELETING,
    HUB_PLANE,
    PROJECT_PLANE,
    RUNNING,
    read_recording,
)
from e2e.world.recorded.renaming import Renaming

NEW = "11111111-1111-4111-8111-111111111111"


def a_renaming() -> Renaming:
    renaming = Renaming("acme", "shop", "DFW")
    (namespace,) = read_recording(RUNNING).of(PROJECT_PLANE, NAMESPACE)
    renaming.learn(namespace, {"metadata": {"uid": NEW}})
    return renaming


def test_what_was_deleted_is_all_that_differs() -> None:
    running, deleting = read_recording(RUNNING), read_recording(DELETING)
    going = [name_of(one) for one in deleting.of(PROJECT_PLANE, WORKLOAD) if is_deleting(one)]
    assert going == ["db", "web"]
    assert not any(is_deleting(one) for one in running.of(PROJECT_PLANE, WORKLOAD))
    assert running.objects[HUB_PLANE] == deleting.objects[HUB_PLANE]


def test_uids_are_replaced_in_names_labels_and_owners() -> None:
    renaming = a_renaming()
    recorded = next(iter(read_recording(RUNNING).of(CELL_PLANE, INSTANCE)))
    owner = next(iter(owners_of(recorded)))
    renaming.uids[str(owner["uid"])] = "of-this-world"
    made = renaming.to_create(recorded)
    assert object_at(made, "metadata")["namespace"] == f"ns-{NEW}"
    assert [one["uid"] for one in owners_of(made)] == ["of-this-world"]
    assert labels_of(made)[labels.WORKLOAD_DEPLOYMENT_UID] == "of-this-world"


def test_project_namespace_and_city_are_those_of_the_world() -> None:
    renaming, recording = a_renaming(), read_recording(RUNNING)
    copy = renaming.to_create(recording.of(HUB_PLANE, INSTANCE)[0])
    identity = [labels_of(copy)[key] for key in (*labels.IDENTITY_LABELS, labels.CITY_CODE)]
    assert identity == ["cluster-acme", "shop", "DFW"]
    claim = renaming.to_create(recording.of(PROJECT_PLANE, CLAIM)[0])
    assert object_at(claim, "spec", "consumerRef")["name"] == "acme"
    workload = renaming.to_create(recording.of(PROJECT_PLANE, WORKLOAD)[0])
    (placement,) = objects_at(workload, "spec", "placements")
    assert placement["cityCodes"] == ["DFW"]


@pytest.mark.parametrize(
    ("plane", "kind"), [(HUB_PLANE, DEPLOYMENT), (HUB_PLANE, INSTANCE), (PROJECT_PLANE, WORKLOAD)]
)
def test_what_the_server_and_karmada_set_is_left_to_them(plane: str, kind: Kind) -> None:
    for recorded in read_recording(RUNNING).of(plane, kind):
        made = a_renaming().to_create(recorded)
        assert "status" not in made
        assert not {"uid", "resourceVersion", "generation"} & set(object_at(made, "metadata"))
        keys = (*labels_of(made), *annotations_of(made))
        assert not [key for key in keys if "karmada.io/" in key]


def test_a_status_is_of_the_generation_that_the_object_has() -> None:
    recorded = read_recording(RUNNING).of(PROJECT_PLANE, WORKLOAD)[0]
    status = a_renaming().to_status(recorded, {"metadata": {"generation": 7}})
    assert status["observedGeneration"] == 7
