"""Builders of valid objects for tests; an object that cannot exist raises an error.

A test overrides only the fields it is about. An object that no API server would store, or no writer
could have written, is refused: a test of it would pass or fail for the wrong reason. Made for the
tests of any package; no product code imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, TypeVar
from uuid import UUID

from compute_api_types import labels
from compute_api_types.conditions import PROGRAMMED, READY, Condition, ConditionStatus, is_true
from compute_api_types.errors import ApiTypesError
from compute_api_types.meta import API_VERSION, ObjectMeta, OwnerReference, TemplateMeta
from compute_api_types.names import (
    LabelValue,
    derive_deployment_names,
    derive_instance_name,
    derive_label_value,
    is_dns_label,
    is_routable_city,
)
from compute_api_types.neighbours.foreign import ForeignCondition, ForeignStatus
from compute_api_types.neighbours.karmada import Cluster
from compute_api_types.neighbours.milo import Project
from compute_api_types.neighbours.networking import Location, LocationSpec, Network
from compute_api_types.template_hash import derive_template_hash
from compute_api_types.v1alpha.instance import (
    Instance,
    InstanceController,
    InstanceControllerStatus,
    InstanceSpec,
    InstanceStatus,
    InstanceTemplate,
    SchedulingGate,
)
from compute_api_types.v1alpha.network_interfaces import NetworkInterface, NetworkReference
from compute_api_types.v1alpha.runtime import (
    Container,
    InstanceResources,
    InstanceRuntime,
    SandboxRuntime,
)
from compute_api_types.v1alpha.scale_settings import ORDERED_READY, ScaleSettings
from compute_api_types.v1alpha.workload import Placement, Workload, WorkloadSpec, WorkloadStatus
from compute_api_types.v1alpha.workload_deployment import (
    WorkloadDeployment,
    WorkloadDeploymentSpec,
    WorkloadDeploymentStatus,
    WorkloadReference,
)

INSTANCE_TYPE: Final = "datumcloud/d1-standard-2"
IMAGE: Final = "registry.example.net/shop/storefront:2.3.1"
CREATED: Final = "2026-06-20T09:00:00Z"
DELETED: Final = "2026-06-20T10:00:00Z"

PROVIDER_FINALIZER: Final = labels.PROVIDER_FINALIZER
"""The provider's, so that a terminating Instance has a reason to be still there (cell.md 15)."""

BOTH_GATES: Final = (labels.NETWORK_GATE, labels.QUOTA_GATE)

Rooted = TypeVar("Rooted", Workload, WorkloadDeployment, Instance)


class ImpossibleObjectError(ApiTypesError):
    """A test asked for an object that cannot exist."""


def _refuse(impossible: Mapping[str, bool]) -> None:
    """Raises for the first rule, a sentence about every real object, with a flag that is set."""
    for always, violated in impossible.items():
        if violated:
            raise ImpossibleObjectError(f"building an object for a test: {always}")


def a_uid(*parts: str) -> str:
    """A UID that is the same in every run, and another one for other parts."""
    return str(UUID(bytes=sha256("\0".join(parts).encode()).digest()[:16]))


# --- conditions -----------------------------------------------------------------------------------


def a_condition(
    condition_type: str = READY,
    status: ConditionStatus = "True",
    reason: str = "Available",
    message: str = "",
    *,
    since: str = CREATED,
    observed_generation: int | None = 1,
) -> Condition:
    """One condition, as its writer leaves it."""
    return Condition(
        type=condition_type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=observed_generation,
    )


# --- Workload -------------------------------------------------------------------------------------


def a_template(
    *,
    image: str = IMAGE,
    networks: Sequence[str] = ("default",),
    template_labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> InstanceTemplate:
    """A template with one container; reserved keys, which admission refuses, are refused here."""
    keys = (*(template_labels or ()), *(annotations or ()))
    _refuse(
        {
            "an instance has at least one network": not networks,
            "a template carries no reserved key": any(
                labels.is_reserved(key) and key not in labels.USER_ANNOTATIONS for key in keys
            ),
        }
    )
    runtime = InstanceRuntime(
        resources=InstanceResources(instance_type=INSTANCE_TYPE),
        sandbox=SandboxRuntime(containers=(Container(name="web", image=image),)),
    )
    interfaces = tuple(NetworkInterface(network=NetworkReference(name=each)) for each in networks)
    metadata = TemplateMeta(
        labels=dict(template_labels) if template_labels else None,
        annotations=dict(annotations) if annotations else None,
    )
    return InstanceTemplate(
        metadata=metadata if keys else None,
        spec=InstanceSpec(runtime=runtime, network_interfaces=interfaces),
    )


def a_placement(
    name: str = "texas", city_codes: Sequence[str] = ("DFW",), *, replicas: int = 1
) -> Placement:
    """One placement; a number or a name that admission refuses is refused here too."""
    _refuse(
        {
            "a placement runs 1 to 1000 replicas in each city": not 1 <= replicas <= 1000,
            "the name of a placement is a DNS label": not is_dns_label(name),
            "a placement names at least one city": not city_codes,
            "a city code is a legal label value": not all(map(is_routable_city, city_codes)),
        }
    )
    return Placement(
        name=name,
        city_codes=tuple(city_codes),
        scale_settings=ScaleSettings(
            min_replicas=replicas, instance_management_policy=ORDERED_READY
        ),
    )


def a_workload(
    name: str = "storefront",
    *,
    namespace: str = "default",
    uid: str | None = None,
    generation: int = 1,
    placements: Sequence[Placement] | None = None,
    template: InstanceTemplate | None = None,
) -> Workload:
    """A Workload as admission lets it in, without a status."""
    wanted = tuple(placements or (a_placement(),))
    cities = [code.lower() for placement in wanted for code in placement.city_codes]
    _refuse(
        {
            "names of placements differ": len({each.name for each in wanted}) < len(wanted),
            "a city occurs once in a Workload": len(set(cities)) < len(cities),
            "a stored object has a generation of 1 or more": generation < 1,
        }
    )
    return Workload(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid or a_uid("Workload", namespace, name),
            generation=generation,
            creation_timestamp=CREATED,
        ),
        spec=WorkloadSpec(template=template or a_template(), placements=wanted),
    )


# --- WorkloadDeployment ---------------------------------------------------------------------------


def a_deployment(
    workload: Workload | None = None,
    *,
    placement: str | None = None,
    city_code: str | None = None,
    uid: str | None = None,
    generation: int = 1,
) -> WorkloadDeployment:
    """The deployment of one city of a Workload, as the workload controller writes it."""
    root = workload or a_workload()
    placed = [each for each in root.spec.placements if placement in (None, each.name)]
    _refuse(
        {
            "a deployment comes from a placement of its Workload": not placed,
            "a stored object has a generation of 1 or more": generation < 1,
        }
    )
    city = city_code or placed[0].city_codes[0]
    _refuse({"a deployment has a city of its placement": city not in placed[0].city_codes})
    return _deployment(root, placed[0], city, uid=uid, generation=generation)


def _deployment(
    root: Workload, placement: Placement, city: str, *, uid: str | None, generation: int
) -> WorkloadDeployment:
    root_uid = root.metadata.uid or ""
    derived = derive_deployment_names(
        workload=root.metadata.name,
        workload_uid=root_uid,
        placement=placement.name,
        city_code=city,
    )
    name = derived.plain or derived.hashed
    return WorkloadDeployment(
        metadata=ObjectMeta(
            name=name,
            namespace=root.metadata.namespace,
            uid=uid or a_uid("WorkloadDeployment", root_uid, name),
            generation=generation,
            creation_timestamp=CREATED,
            labels={labels.WORKLOAD_UID: root_uid},
            owner_references=(_owner("Workload", root.metadata),),
        ),
        spec=WorkloadDeploymentSpec(
            workload_ref=WorkloadReference(name=root.metadata.name, uid=root_uid),
            placement_name=placement.name,
            city_code=city,
            template=root.spec.template,
            scale_settings=placement.scale_settings,
        ),
    )


def _owner(kind: str, owner: ObjectMeta) -> OwnerReference:
    return OwnerReference(
        api_version=API_VERSION,
        kind=kind,
        name=owner.name,
        uid=owner.uid or "",
        controller=True,
        block_owner_deletion=True,
    )


# --- Instance -------------------------------------------------------------------------------------


def an_instance(
    deployment: WorkloadDeployment | None = None,
    ordinal: int = 0,
    *,
    gates: Sequence[str] = BOTH_GATES,
    conditions: Sequence[Condition] | None = None,
    observed_hash: str | None = None,
    uid: str | None = None,
) -> Instance:
    """The Instance of a slot on its cell; without conditions it shows what the schema defaults."""
    root = deployment or a_deployment()
    spec = root.spec
    if spec is None:
        raise ImpossibleObjectError("building an object for a test: no instance without a template")
    shown = tuple(conditions) if conditions is not None else None
    _refuse(
        {
            "a gate is listed once": len(set(gates)) < len(gates),
            "nothing runs behind a gate": bool(gates) and is_true(shown, PROGRAMMED),
            "nobody observes a template hash behind a gate": bool(gates and observed_hash),
            "an ordinal counts from 0": ordinal < 0,
        }
    )
    name = derive_instance_name(root.metadata.name, ordinal)
    linking = _linking_labels(root.metadata, spec, ordinal)
    return Instance(
        metadata=ObjectMeta(
            name=name,
            namespace=root.metadata.namespace,
            uid=uid or a_uid("Instance", root.metadata.uid or "", name),
            generation=1,
            creation_timestamp=CREATED,
            labels=_labels(spec, linking),
            annotations=_annotations(spec, linking) or None,
            owner_references=(_owner("WorkloadDeployment", root.metadata),),
        ),
        spec=spec.template.spec.model_copy(
            update={"controller": _controller(spec.template, gates)}
        ),
        status=_instance_status(shown, observed_hash),
    )


def _controller(template: InstanceTemplate, gates: Sequence[str]) -> InstanceController:
    return InstanceController(
        template_hash=derive_template_hash(template.to_document()),
        scheduling_gates=tuple(SchedulingGate(name=each) for each in gates) or None,
    )


def _instance_status(
    conditions: tuple[Condition, ...] | None, observed_hash: str | None
) -> InstanceStatus:
    shown = InstanceStatus.defaulted().conditions if conditions is None else conditions
    realised = (
        InstanceControllerStatus(observed_template_hash=observed_hash) if observed_hash else None
    )
    return InstanceStatus(conditions=shown, controller=realised)


def _linking_labels(
    deployment: ObjectMeta, spec: WorkloadDeploymentSpec, ordinal: int
) -> dict[str, LabelValue]:
    linking = {
        labels.WORKLOAD_UID: spec.workload_ref.uid,
        labels.WORKLOAD_NAME: spec.workload_ref.name,
        labels.WORKLOAD_DEPLOYMENT_UID: deployment.uid or "",
        labels.WORKLOAD_DEPLOYMENT_NAME: deployment.name,
        labels.PLACEMENT_NAME: spec.placement_name,
        labels.CITY_CODE: spec.city_code,
        labels.INSTANCE_INDEX: str(ordinal),
    }
    return {key: derive_label_value(value) for key, value in linking.items()}


def _labels(spec: WorkloadDeploymentSpec, linking: Mapping[str, LabelValue]) -> dict[str, str]:
    of_template = spec.template.metadata.labels if spec.template.metadata else None
    return {**(of_template or {}), **{key: label.value for key, label in linking.items()}}


def _annotations(spec: WorkloadDeploymentSpec, linking: Mapping[str, LabelValue]) -> dict[str, str]:
    of_template = spec.template.metadata.annotations if spec.template.metadata else None
    full = {key: label.full for key, label in linking.items() if label.full is not None}
    return {**(of_template or {}), **full}


# --- deletion and status --------------------------------------------------------------------------


def terminating(live: Rooted, *, finalizers: Sequence[str] | None = None) -> Rooted:
    """The object while it is being deleted; without a finalizer it would not exist any more."""
    held = live.metadata.finalizers or _DEFAULT_FINALIZERS[live.kind]
    wanted = tuple(held if finalizers is None else finalizers)
    _refuse({"an object without finalizers goes at once": not wanted})
    metadata = live.metadata.model_copy(
        update={"deletion_timestamp": DELETED, "finalizers": wanted}
    )
    return live.model_copy(update={"metadata": metadata})


_DEFAULT_FINALIZERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Workload": (labels.WORKLOAD_FINALIZER,),
    "WorkloadDeployment": (labels.FEDERATION_FINALIZER,),
    "Instance": (PROVIDER_FINALIZER,),
}


def with_deployment_status(
    deployment: WorkloadDeployment, status: WorkloadDeploymentStatus
) -> WorkloadDeployment:
    """The deployment with a status its writer could have written."""
    _refuse(_impossible_counts(status) | _impossible_generations(deployment.metadata, status))
    return deployment.model_copy(update={"status": status})


def with_workload_status(workload: Workload, status: WorkloadStatus) -> Workload:
    """The Workload with a status its writer could have written."""
    _refuse(_impossible_counts(status) | _impossible_generations(workload.metadata, status))
    return workload.model_copy(update={"status": status})


def _impossible_counts(status: WorkloadDeploymentStatus | WorkloadStatus) -> dict[str, bool]:
    return {
        "no more instances are ready than exist": status.ready_replicas > status.replicas,
        "no more instances are updated than exist": status.updated_replicas > status.replicas,
        "no more instances are current than updated": (
            status.current_replicas > status.updated_replicas
        ),
        "counters are not negative": min(status.ready_replicas, status.current_replicas) < 0,
    }


def _impossible_generations(
    metadata: ObjectMeta, status: WorkloadDeploymentStatus | WorkloadStatus
) -> dict[str, bool]:
    conditions = status.conditions or ()
    newest = max((each.observed_generation or 0 for each in conditions), default=0)
    types = [each.type for each in conditions]
    return {
        "nobody observes a generation that is still to come": (
            max(newest, status.observed_generation) > (metadata.generation or 0)
        ),
        "a condition type occurs once": len(set(types)) < len(types),
    }


# --- neighbours -----------------------------------------------------------------------------------


def a_location(city_code: str = "DFW", name: str = "us-dallas-1") -> Location:
    """A Location that serves a city."""
    return Location(
        metadata=ObjectMeta(name=name, uid=a_uid("Location", name), creation_timestamp=CREATED),
        spec=LocationSpec(topology={labels.TOPOLOGY_CITY_CODE: city_code}),
    )


def a_network(name: str = "default", *, namespace: str = "default") -> Network:
    """A Network that a template may refer to."""
    return Network(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=a_uid("Network", namespace, name),
            creation_timestamp=CREATED,
        )
    )


def a_cluster(name: str = "dfw-1", city_code: str | None = "DFW") -> Cluster:
    """A cell as the hub knows it; None for one that carries no city."""
    _refuse(
        {
            "the city of a cluster is a legal label value": (
                city_code is not None and not is_routable_city(city_code)
            )
        }
    )
    routing = {labels.TOPOLOGY_CITY_CODE: city_code} if city_code is not None else None
    return Cluster(
        metadata=ObjectMeta(
            name=name, uid=a_uid("Cluster", name), creation_timestamp=CREATED, labels=routing
        )
    )


def a_project(name: str = "acme-shop", *, ready: bool = True) -> Project:
    """A Project at Milo's root."""
    status, reason = ("True", "Ready") if ready else ("False", "Provisioning")
    condition = ForeignCondition(
        type=READY, status=status, reason=reason, last_transition_time=CREATED
    )
    return Project(
        metadata=ObjectMeta(name=name, uid=a_uid("Project", name), creation_timestamp=CREATED),
        status=ForeignStatus(conditions=(condition,)),
    )
