"""Cache indexes of the hub controllers, on projects and on the hub. Pure.

One module, because one store serves all controllers, and two indexes of one name would replace each
other. An index function runs when an object is stored, which may have any shape; its values are
also all that mapping functions read of a body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from compute_api_types import conditions, labels, names
from compute_management_operator.hub.identity import read_namespace, read_project
from compute_management_operator.hub.sanitise import sanitise_counter
from compute_management_operator.stored_status import StoredCondition, find_condition
from compute_operator_kit.cache.indexers import IndexFunction, metadata_index
from compute_operator_kit.cache.store import CachedObject
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)
from compute_operator_kit.core.objects import Metadata

NAMESPACE_OF: Final = "in-namespace"
RECORDED: Final = "recorded-hub-namespace"
CITY: Final = "city-code"
SCALE: Final = "scale"
BASE: Final = "policy-base"
PROJECT: Final = "project"
IDENTITY: Final = "project-identity"
CODE: Final = "routed-code"
OURS: Final = "policy-of-ours"
CELLS: Final = "reporting-cells"
OWNER: Final = "owning-deployment"
CELL: Final = "cell"
QUARANTINE: Final = "quarantine"
SUSPENSION: Final = "suspension"
REPORTED_BY: Final = "reported-by"
CLUSTER_READY: Final = "cluster-ready"
NAME: Final = "name"

# Values of `SUSPENSION`.
SUSPENDED: Final = "suspended"
STOP_UNCONFIRMED: Final = "stop-unconfirmed"
RESUME_UNCONFIRMED: Final = "resume-unconfirmed"


# --- values ---------------------------------------------------------------------------------------


def join_project_namespace(namespace: str, name: str) -> str:
    """An index value of two names, neither of which can contain the slash."""
    return f"{namespace}/{name}"


def join_identity(project: str, namespace: str, name: str) -> str:
    return f"{project}/{namespace}/{name}"


def find_value(entry: CachedObject, index: str) -> str:
    """The one value of an entry under an index; "" where it has none."""
    return next(iter(entry.index_values.get(index, ())), "")


def derive_base(code: str) -> str:
    """The base name of the policy of a city; "" for a code that cannot route."""
    return names.derive_policy_names(code)[0] if names.is_routable_city(code) else ""


def derive_policy_home(name: str, code: str) -> str:
    """The base name of the key that a policy of this name and city belongs to.

    A policy with a name derived from its city belongs to that city. Any other was created or
    changed by another client and belongs to the key of its own name: exactly one key plans it.
    """
    if names.is_routable_city(code):
        base, second = names.derive_policy_names(code)
        if name in {base, second}:
            return base
    return name


def read_city(body: JsonObject) -> str:
    """The city a deployment asks for."""
    return member_text(member_object(body, "spec"), "cityCode")


def read_scale(body: JsonObject) -> int:
    """The replicas that a deployment asks for; 0 where that is no valid counter."""
    settings = member_object(member_object(body, "spec"), "scaleSettings")
    return sanitise_counter(member_int(settings, "minReplicas"))


def read_most(body: JsonObject) -> int:
    """The most replicas that a deployment may have: autoscaled, its cell decides up to a limit."""
    settings = member_object(member_object(body, "spec"), "scaleSettings")
    limit = member_int(settings, "maxReplicas") if member_list(settings, "metrics") else 0
    return max(read_scale(body), sanitise_counter(limit))


def read_routing(metadata: Metadata) -> str:
    """The city a hub object is routed to."""
    return metadata.labels.get(labels.TOPOLOGY_CITY_CODE, "")


def has_data(metadata: Metadata) -> bool:
    """Whether a copy states which referenced data its cell is to expect."""
    return labels.EXPECTED_REFERENCED_DATA in metadata.annotations


def read_policy_code(body: JsonObject) -> str:
    """The city from which a policy selects deployments; "" where it is not one city."""
    selectors = member_list(member_object(body, "spec"), "resourceSelectors")
    codes = {_selected_code(entry) for entry in selectors}
    return codes.pop() if len(codes) == 1 else ""


def _selected_code(selector: Json) -> str:
    if not isinstance(selector, dict):
        return ""
    matched = member_object(member_object(selector, "labelSelector"), "matchLabels")
    return member_text(matched, labels.TOPOLOGY_CITY_CODE)


def reporting_cells(reporting: StoredCondition | None) -> tuple[str, ...] | None:
    """The cells named by the interpreter's condition on a hub status; None without it."""
    if reporting is None:
        return None
    return tuple(reporting.message.split(",")) if reporting.message else ()


# --- index functions ------------------------------------------------------------------------------


def _some(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def index_by_namespace(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(metadata.namespace)


def index_by_name(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(metadata.name)


def index_by_recorded(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Project deployments: the hub namespace they recorded; a hint that a user can forge."""
    return _some(metadata.annotations.get(labels.FEDERATION_NAMESPACE, ""))


def index_by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    return _some(read_city(body))


def index_by_scale(_: Metadata, body: JsonObject) -> Iterable[str]:
    """Project deployments: their scale, which bounds the number of projections."""
    return (str(read_most(body)),)


def index_by_desired_base(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    """Project deployments: namespace and policy base of the city they ask for."""
    base = derive_base(read_city(body))
    return (join_project_namespace(metadata.namespace, base),) if base else ()


def index_by_routed_base(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Hub deployments: namespace and policy base of the city they are routed to."""
    base = derive_base(read_routing(metadata))
    return (join_project_namespace(metadata.namespace, base),) if base else ()


def index_by_project(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(read_project(metadata) or "")


def index_by_identity(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Hub deployments: the project deployment they are a copy of, by their own labels."""
    project, namespace = read_project(metadata), read_namespace(metadata)
    return (join_identity(project, namespace, metadata.name),) if project and namespace else ()


def index_by_routing(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(read_routing(metadata))


def index_by_cells(_: Metadata, body: JsonObject) -> Iterable[str]:
    """Hub deployments: how many cells report, as a label value of the metric."""
    reporting = find_condition(member_object(body, "status"), conditions.CELLS_REPORTING)
    cells = reporting_cells(reporting)
    # Unknown: no cell reports now; the names are of the cells that the counters came from.
    if not cells or reporting is None or reporting.status == "Unknown":
        return ("0",)
    return ("1",) if len(cells) == 1 else ("many",)


def index_by_reporting_cell(_: Metadata, body: JsonObject) -> Iterable[str]:
    """Hub deployments: each cell that has reported, by name."""
    reporting = find_condition(member_object(body, "status"), conditions.CELLS_REPORTING)
    return reporting_cells(reporting) or ()


def index_by_policy_code(_: Metadata, body: JsonObject) -> Iterable[str]:
    return _some(read_policy_code(body))


def index_ours(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Policies: whether the name has the form of ours."""
    return ("yes",) if is_policy_of_ours(metadata.namespace, metadata.name) else ()


def is_policy_of_ours(namespace: str, name: str) -> bool:
    return name.startswith("city-") and names.parse_hub_namespace(namespace) is not None


def index_by_owner(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Hub Instances: hub namespace and name of their deployment."""
    name = metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")
    return (join_project_namespace(metadata.namespace, name),) if name else ()


def index_by_cell(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(metadata.labels.get(labels.CELL, ""))


def index_by_quarantine(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(metadata.annotations.get(labels.QUARANTINE_REASON, ""))


def index_by_suspension(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    """Hub deployments: whether they are suspended, and whether their cells have not acted on that
    or on the resume. Without Instances there is nothing to stop.
    """
    status = member_object(body, "status")
    is_confirmed = status.get("suspended") is True
    if not labels.is_suspended(metadata.annotations):
        return (RESUME_UNCONFIRMED,) if is_confirmed else ()
    has_instances = member_int(status, "replicas") > 0
    is_awaited = has_instances and not is_confirmed
    return (SUSPENDED, STOP_UNCONFIRMED) if is_awaited else (SUSPENDED,)


def index_by_readiness(_: Metadata, body: JsonObject) -> Iterable[str]:
    """Clusters: the status of their condition `Ready`, which Karmada writes."""
    ready = find_condition(member_object(body, "status"), conditions.READY)
    return () if ready is None else (ready.status,)


# --- caches ---------------------------------------------------------------------------------------

PROJECT_DEPLOYMENTS: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: index_by_namespace,
    RECORDED: index_by_recorded,
    CITY: index_by_city,
    SCALE: index_by_scale,
    BASE: index_by_desired_base,
}
HUB_DEPLOYMENTS: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: index_by_namespace,
    PROJECT: index_by_project,
    IDENTITY: index_by_identity,
    BASE: index_by_routed_base,
    CELLS: index_by_cells,
    SUSPENSION: index_by_suspension,
    REPORTED_BY: index_by_reporting_cell,
}
PROJECT_INSTANCES: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: metadata_index(index_by_namespace),
}
HUB_NAMESPACES: Final[Mapping[str, IndexFunction]] = {PROJECT: index_by_project}
HUB_CLUSTERS: Final[Mapping[str, IndexFunction]] = {
    NAME: index_by_name,
    CITY: index_by_routing,
    CLUSTER_READY: index_by_readiness,
}
HUB_POLICIES: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: index_by_namespace,
    CODE: index_by_policy_code,
    OURS: index_ours,
}
HUB_INSTANCES: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: metadata_index(index_by_namespace),
    PROJECT: metadata_index(index_by_project),
    OWNER: metadata_index(index_by_owner),
    CELL: metadata_index(index_by_cell),
    QUARANTINE: metadata_index(index_by_quarantine),
}
