from compute_api_types.v1alpha.workload_deployment import WorkloadDeploymentStatus
from compute_api_types.wire import JsonObject, overlay


def test_owned_fields_are_replaced_removed_and_added_and_the_rest_is_kept() -> None:
    stored: JsonObject = {"replicas": 1, "location": {"name": "a"}, "newer": {"x": [1]}}
    wanted: JsonObject = {"replicas": 2, "readyReplicas": 0, "foreign": True}
    owned = ("replicas", "readyReplicas", "location")
    assert overlay(stored, wanted, owned=owned) == {
        "replicas": 2,
        "readyReplicas": 0,
        "newer": {"x": [1]},
    }


def test_arguments_are_left_as_they_are() -> None:
    stored: JsonObject = {"a": 1}
    overlay(stored, {"a": 2}, owned=("a",))
    assert stored == {"a": 1}


def test_a_status_of_a_newer_release_keeps_what_this_one_does_not_know() -> None:
    stored: JsonObject = {"replicas": 3, "addedLater": True, "observedGeneration": 1}
    status = WorkloadDeploymentStatus(replicas=4, observed_generation=2)
    ours = [field.alias or name for name, field in type(status).model_fields.items()]
    written = overlay(stored, status.to_document(), owned=ours)
    assert written["addedLater"] is True
    assert (written["replicas"], written["readyReplicas"], written["observedGeneration"]) == (
        4,
        0,
        2,
    )
