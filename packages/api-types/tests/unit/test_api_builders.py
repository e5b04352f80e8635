from collections.abc import Callable

import pytest

from compute_api_types import labels
from compute_api_types.template_hash import HashVerdict, judge_template_hash
from compute_api_types.testing import (
    PROVIDER_FINALIZER,
    ImpossibleObjectError,
    a_cluster,
    a_condition,
    a_deployment,
    a_placement,
    a_template,
    a_uid,
    a_workload,
    an_instance,
    terminating,
    with_deployment_status,
    with_workload_status,
)
from compute_api_types.v1alpha.instance import InstanceStatus
from compute_api_types.v1alpha.workload import Workload, WorkloadStatus
from compute_api_types.v1alpha.workload_deployment import WorkloadDeploymentStatus
from compute_api_types.validation import Facts, Review, review_workload

LONG = "a-very-long-workload-name-that-nobody-should-choose-but-the-api-server-accepts-it"


def test_an_instance_is_tied_to_its_deployment_and_that_to_its_workload() -> None:
    workload = a_workload()
    deployment = a_deployment(workload)
    instance = an_instance(deployment, 2)
    owner = instance.metadata.controller()
    assert owner is not None
    assert (owner.kind, owner.uid) == ("WorkloadDeployment", deployment.metadata.uid)
    root = deployment.metadata.controller()
    assert root is not None
    assert (root.kind, root.uid) == ("Workload", workload.metadata.uid)
    assert instance.metadata.name == "storefront-texas-dfw-2"
    assert instance.metadata.labels == {
        labels.WORKLOAD_UID: workload.metadata.uid,
        labels.WORKLOAD_NAME: "storefront",
        labels.WORKLOAD_DEPLOYMENT_UID: deployment.metadata.uid,
        labels.WORKLOAD_DEPLOYMENT_NAME: "storefront-texas-dfw",
        labels.PLACEMENT_NAME: "texas",
        labels.CITY_CODE: "DFW",
        labels.INSTANCE_INDEX: "2",
    }


def test_template_labels_and_annotations_reach_the_instance_and_long_values_stand_in_full() -> None:
    template = a_template(template_labels={"app": "web"}, annotations={labels.RESTARTED_AT: "now"})
    instance = an_instance(a_deployment(a_workload(LONG, template=template)))
    assert instance.metadata.label("app") == "web"
    assert instance.metadata.annotation(labels.RESTARTED_AT) == "now"
    assert instance.metadata.label(labels.WORKLOAD_NAME) == (
        "a-very-long-workload-name-that-nobody-shou-17a842b1a62774ebd394"
    )
    assert instance.metadata.annotation(labels.WORKLOAD_NAME) == LONG


def test_an_instance_runs_the_template_of_its_deployment() -> None:
    deployment = a_deployment()
    instance = an_instance(deployment)
    assert instance.spec is not None
    assert instance.spec.controller is not None
    assert deployment.spec is not None
    recorded = instance.spec.controller.template_hash
    template = deployment.spec.template.to_document()
    assert judge_template_hash(recorded, template) is HashVerdict.CURRENT


def test_an_instance_without_conditions_shows_the_schema_default_and_none_means_none() -> None:
    assert an_instance().status == InstanceStatus.defaulted()
    assert an_instance(conditions=()).conditions == ()


def test_uids_are_the_same_in_every_run_and_differ_between_objects() -> None:
    assert a_uid("a", "b") == a_uid("a", "b")
    assert a_uid("a", "b") != a_uid("ab")
    assert a_workload().metadata.uid != a_workload("other").metadata.uid
    assert an_instance(ordinal=0).metadata.uid != an_instance(ordinal=1).metadata.uid
    assert a_workload(uid="x").metadata.uid == "x"


def test_a_deployment_is_chosen_by_placement_and_city() -> None:
    workload = a_workload(
        placements=[a_placement("texas", ["DFW", "AUS"]), a_placement("london", ["LHR"])]
    )
    assert a_deployment(workload, placement="london").metadata.name == "storefront-london-lhr"
    assert a_deployment(workload, city_code="AUS").metadata.name == "storefront-texas-aus"


def test_a_terminating_object_keeps_its_finalizers_or_gets_its_owners() -> None:
    assert terminating(an_instance()).metadata.finalizers == (PROVIDER_FINALIZER,)
    held = terminating(a_deployment(), finalizers=("example.net/x",))
    assert held.metadata.finalizers == ("example.net/x",)
    assert terminating(held).metadata.finalizers == ("example.net/x",)
    assert held.metadata.is_terminating


ADMITTED = [
    a_workload(),
    a_workload("w" * 253),
    a_workload(template=a_template(annotations={labels.RESTARTED_AT: "2026-06-20T09:00:00Z"})),
    a_workload(
        placements=[a_placement("a", ["DFW"], replicas=1000), a_placement("b", ["LHR"])],
        template=a_template(template_labels={"app": "web"}),
    ),
]


@pytest.mark.parametrize("workload", ADMITTED)
def test_a_workload_that_was_built_is_one_that_admission_lets_in(workload: Workload) -> None:
    facts = Facts("p", frozenset({"DFW", "LHR"}), {"default": Review.ALLOWED})
    assert review_workload(workload.to_document(), None, facts) == ()


IMPOSSIBLE: dict[str, list[Callable[[], object]]] = {
    "a placement runs 1 to 1000 replicas": [
        lambda: a_placement(replicas=0),
        lambda: a_placement(replicas=1001),
    ],
    "the name of a placement is a DNS label": [lambda: a_placement("Not valid")],
    "a placement names at least one city": [lambda: a_placement(city_codes=())],
    "a city code is a legal label value": [
        lambda: a_placement(city_codes=("New York",)),
        lambda: a_placement(city_codes=("",)),
    ],
    "an instance has at least one network": [lambda: a_template(networks=())],
    "a template carries no reserved key": [
        lambda: a_template(template_labels={labels.CELL: "dfw-1"}),
        lambda: a_template(annotations={labels.UPSTREAM_NAMESPACE: "default"}),
    ],
    "names of placements differ": [
        lambda: a_workload(placements=[a_placement("a"), a_placement("a", ["LHR"])])
    ],
    "a city occurs once in a Workload": [
        lambda: a_workload(placements=[a_placement("a", ["DFW"]), a_placement("b", ["dfw"])])
    ],
    "a stored object has a generation of 1 or more": [
        lambda: a_workload(generation=0),
        lambda: a_deployment(generation=0),
    ],
    "a deployment comes from a placement of its Workload": [
        lambda: a_deployment(placement="other")
    ],
    "a deployment has a city of its placement": [lambda: a_deployment(city_code="LHR")],
    "no instance without a template": [
        lambda: an_instance(a_deployment().model_copy(update={"spec": None}))
    ],
    "a gate is listed once": [lambda: an_instance(gates=("Quota", "Quota"))],
    "nothing runs behind a gate": [
        lambda: an_instance(conditions=(a_condition("Programmed", "True", "Programmed"),))
    ],
    "nobody observes a template hash behind a gate": [lambda: an_instance(observed_hash="v1-0")],
    "an ordinal counts from 0": [lambda: an_instance(ordinal=-1)],
    "an object without finalizers goes at once": [
        lambda: terminating(an_instance(), finalizers=())
    ],
    "no more instances are ready than exist": [
        lambda: with_deployment_status(
            a_deployment(), WorkloadDeploymentStatus(replicas=1, ready_replicas=2)
        )
    ],
    "no more instances are updated than exist": [
        lambda: with_workload_status(a_workload(), WorkloadStatus(updated_replicas=1))
    ],
    "no more instances are current than updated": [
        lambda: with_deployment_status(
            a_deployment(), WorkloadDeploymentStatus(replicas=1, current_replicas=1)
        )
    ],
    "counters are not negative": [
        lambda: with_workload_status(a_workload(), WorkloadStatus(ready_replicas=-1))
    ],
    "nobody observes a generation that is still to come": [
        lambda: with_workload_status(a_workload(), WorkloadStatus(observed_generation=2)),
        lambda: with_deployment_status(
            a_deployment(),
            WorkloadDeploymentStatus(conditions=(a_condition(observed_generation=2),)),
        ),
    ],
    "a condition type occurs once": [
        lambda: with_workload_status(
            a_workload(), WorkloadStatus(conditions=(a_condition(), a_condition()))
        )
    ],
    "the city of a cluster is a legal label value": [lambda: a_cluster(city_code="New York")],
}


@pytest.mark.parametrize("always", IMPOSSIBLE)
def test_the_impossible_is_refused(always: str) -> None:
    for build in IMPOSSIBLE[always]:
        with pytest.raises(ImpossibleObjectError, match=always):
            build()
