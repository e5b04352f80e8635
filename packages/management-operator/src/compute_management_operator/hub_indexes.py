"""Under which values federation, policy and projection find objects, on projects and on the hub.
Pure.

One page, because a store exists once for all who read it and two indexes of one name would clash.
An index function runs when an object is stored and may meet any shape; what it returns is also all
that mapping functions see of a body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from compute_api_types import conditions, labels, names
from compute_management_operator.identities import read_namespace, read_project
from compute_management_operator.sanitise import sanitise_counter
from compute_operator_kit.cache import Entry
from compute_operator_kit.indexing import IndexFunction, of_header
from compute_operator_kit.objects import Metadata
from compute_operator_kit.wire import (
    Json,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)

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


# --- values ---------------------------------------------------------------------------------------


def join_place(namespace: str, name: str) -> str:
    """A value that two names make together; neither can hold the slash."""
    return f"{namespace}/{name}"


def join_identity(project: str, namespace: str, name: str) -> str:
    return f"{project}/{namespace}/{name}"


def find_value(entry: Entry, index: str) -> str:
    """The one value of an entry under an index; "" where it has none."""
    return next(iter(entry.values.get(index, ())), "")


def derive_base(code: str) -> str:
    """The base name of the policy of a city; "" for a code that cannot route."""
    return names.derive_policy_names(code)[0] if names.is_routable_city(code) else ""


def derive_policy_home(name: str, code: str) -> str:
    """The base name of the key that a policy of this name and city belongs to.

    One that bears a name of the city it names belongs to that city. Any other was made or changed
    by somebody and belongs to the key of its own name, so that exactly one worker judges it.
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
    """How many instances a deployment asks for, within what a counter may be."""
    settings = member_object(member_object(body, "spec"), "scaleSettings")
    return sanitise_counter(member_int(settings, "minReplicas"))


def read_routing(metadata: Metadata) -> str:
    """The city a hub object is routed to."""
    return metadata.labels.get(labels.TOPOLOGY_CITY_CODE, "")


def read_policy_code(body: JsonObject) -> str:
    """The city a policy takes deployments of; "" where it is not one city."""
    selectors = member_list(member_object(body, "spec"), "resourceSelectors")
    codes = {_selected_code(entry) for entry in selectors}
    return codes.pop() if len(codes) == 1 else ""


def _selected_code(selector: Json) -> str:
    if not isinstance(selector, dict):
        return ""
    matched = member_object(member_object(selector, "labelSelector"), "matchLabels")
    return member_text(matched, labels.TOPOLOGY_CITY_CODE)


def read_reporting_cells(status: JsonObject) -> tuple[str, ...] | None:
    """The cells whose report a hub status holds; None without the interpreter's condition."""
    found = _reporting(status)
    if found is None:
        return None
    message = member_text(found, "message")
    return tuple(message.split(",")) if message else ()


def _reporting(status: JsonObject) -> JsonObject | None:
    for entry in member_list(status, "conditions"):
        if isinstance(entry, dict) and member_text(entry, "type") == conditions.CELLS_REPORTING:
            return entry
    return None


# --- index functions ------------------------------------------------------------------------------


def _some(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def index_by_namespace(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(metadata.namespace)


def index_by_recorded(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Project deployments: the hub namespace they recorded; a hint, and its owner can forge it."""
    return _some(metadata.annotations.get(labels.FEDERATION_NAMESPACE, ""))


def index_by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    return _some(read_city(body))


def index_by_scale(_: Metadata, body: JsonObject) -> Iterable[str]:
    """Project deployments: their scale, which bounds what is shown of them."""
    return (str(read_scale(body)),)


def index_by_wanted_base(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    """Project deployments: namespace and policy base of the city they ask for."""
    base = derive_base(read_city(body))
    return (join_place(metadata.namespace, base),) if base else ()


def index_by_routed_base(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Hub deployments: namespace and policy base of the city they are routed to."""
    base = derive_base(read_routing(metadata))
    return (join_place(metadata.namespace, base),) if base else ()


def index_by_project(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(read_project(metadata) or "")


def index_by_identity(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Hub deployments: the project deployment they are a copy of, by their own labels."""
    project, namespace = read_project(metadata), read_namespace(metadata)
    return (join_identity(project, namespace, metadata.name),) if project and namespace else ()


def index_by_routing(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(read_routing(metadata))


def index_by_cells(_: Metadata, body: JsonObject) -> Iterable[str]:
    """Hub deployments: how many cells report, as the metric says it."""
    status = member_object(body, "status")
    cells, found = read_reporting_cells(status), _reporting(status)
    # Unknown: nobody reports now, the names are those the numbers came from.
    if not cells or found is None or member_text(found, "status") == "Unknown":
        return ("0",)
    return ("1",) if len(cells) == 1 else ("many",)


def index_by_policy_code(_: Metadata, body: JsonObject) -> Iterable[str]:
    return _some(read_policy_code(body))


def index_ours(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Policies: whether the name is one that we give."""
    return ("yes",) if is_policy_of_ours(metadata.namespace, metadata.name) else ()


def is_policy_of_ours(namespace: str, name: str) -> bool:
    return name.startswith("city-") and names.parse_hub_namespace(namespace) is not None


def index_by_owner(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Hub Instances: hub namespace and name of their deployment."""
    name = metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")
    return (join_place(metadata.namespace, name),) if name else ()


def index_by_cell(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(metadata.labels.get(labels.CELL, ""))


def index_by_quarantine(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return _some(metadata.annotations.get(labels.QUARANTINE_REASON, ""))


# --- caches ---------------------------------------------------------------------------------------

PROJECT_DEPLOYMENTS: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: index_by_namespace,
    RECORDED: index_by_recorded,
    CITY: index_by_city,
    SCALE: index_by_scale,
    BASE: index_by_wanted_base,
}
HUB_DEPLOYMENTS: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: index_by_namespace,
    PROJECT: index_by_project,
    IDENTITY: index_by_identity,
    BASE: index_by_routed_base,
    CELLS: index_by_cells,
}
PROJECT_INSTANCES: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: of_header(index_by_namespace),
}
HUB_NAMESPACES: Final[Mapping[str, IndexFunction]] = {PROJECT: index_by_project}
HUB_CLUSTERS: Final[Mapping[str, IndexFunction]] = {CITY: index_by_routing}
HUB_POLICIES: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: index_by_namespace,
    CODE: index_by_policy_code,
    OURS: index_ours,
}
HUB_INSTANCES: Final[Mapping[str, IndexFunction]] = {
    NAMESPACE_OF: of_header(index_by_namespace),
    PROJECT: of_header(index_by_project),
    OWNER: of_header(index_by_owner),
    CELL: of_header(index_by_cell),
    QUARANTINE: of_header(index_by_quarantine),
}
