"""The admission policies that keep cells apart, in Python: simulated planes evaluate no CEL.

`deploy/hub/admission` and `deploy/milo/admission` are the policies; these forms say the same, in
the same order and words, and stand in for them under the same names. A table of requests judges
both, here and on a real API server. What a policy is about (kinds, operations, bindings) is read
from the stored objects and is not repeated here; its match condition is, because that is CEL too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from compute_api_types import labels, names
from compute_sim_planes.api_server.admission import AdmissionRequest
from compute_sim_planes.api_server.policies import Denial, PolicyForm
from compute_sim_planes.json_types import JsonObject, objects_at, string_at, string_map_at

CELL_USER: Final = "compute:cell:"
MANAGEMENT_USER: Final = "system:serviceaccount:compute-system:compute-management-operator"
PROJECT_NAMESPACE: Final = "ns-"
# What a claim of ours asks for; each service of the platform has a prefix of its own.
OUR_RESOURCES: Final = "compute.datumapis.com/"
# The template of a cell as `deploy/` has it, before its name and city are put in.
TEMPLATE: Final[Mapping[str, str]] = MappingProxyType({"example": "CITY"})
_FORBIDDEN: Final = "Forbidden"


@dataclass(frozen=True, slots=True)
class OwnObjectsOnly:
    """A cell writes objects whose label names it, and takes over those that name nobody."""

    label: str
    kind: str
    # Which namespaces are a cell's at all, and what it is told about the others.
    prefix: str = ""
    elsewhere: str = ""

    def __call__(self, request: AdmissionRequest) -> Denial | None:
        if not request.user.name.startswith(CELL_USER):
            return None
        cell = request.user.name.removeprefix(CELL_USER)
        if not cell:
            return _refuse("the user names no cell")
        if not request.namespace.startswith(self.prefix):
            return _refuse(self.elsewhere)
        if request.wanted is not None and self.owner_of(request.wanted) != cell:
            return _refuse(f"label {self.label} must name the cell that writes")
        if self.owner_of(request.found) not in {"", cell}:
            return _refuse(f"the {self.kind} belongs to another cell")
        return None

    def owner_of(self, found: JsonObject | None) -> str:
        """The cell an object names; the label may be absent or empty, which is nobody."""
        return string_map_at(found, "metadata", "labels").get(self.label, "")


@dataclass(frozen=True, slots=True)
class OwnSlotsOnly:
    """A cell writes copies of Instances that are its own and bear the name of a slot of the
    deployment they name.
    """

    own: OwnObjectsOnly

    def __call__(self, request: AdmissionRequest) -> Denial | None:
        denial = self.own(request)
        is_cell = request.user.name.startswith(CELL_USER)
        if denial is not None or not is_cell or request.wanted is None:
            return denial
        name = string_at(request.wanted, "metadata", "name")
        if any(names.parse_ordinal(one, name) is not None for one in _deployments(request.wanted)):
            return None
        return _refuse(
            "the name must be <deployment>-<ordinal> of the deployment in label "
            f"{labels.WORKLOAD_DEPLOYMENT_NAME}"
        )


def _deployments(wanted: JsonObject) -> tuple[str, ...]:
    """The deployment that a copy names; an annotation holds the full name where a label is too
    short for it.
    """
    key = labels.WORKLOAD_DEPLOYMENT_NAME
    label = string_map_at(wanted, "metadata", "labels").get(key, "")
    full = string_map_at(wanted, "metadata", "annotations").get(key, "")
    return (label, full) if len(full) > names.LONGEST_LABEL else (label,)


@dataclass(frozen=True, slots=True)
class SlotClaimsOnly:
    """A cell writes claims of slots, for compute resources alone, beside `OwnObjectsOnly`.

    What carries the cell's own label it may release under any name.
    """

    owned: OwnObjectsOnly

    def __call__(self, request: AdmissionRequest) -> Denial | None:
        if not request.user.name.startswith(CELL_USER):
            return None
        return self.owned(request) or self._judge_claim(request)

    def _judge_claim(self, request: AdmissionRequest) -> Denial | None:
        is_own = request.found is not None and bool(self.owned.owner_of(request.found))
        if not is_own and not names_slot(request.wanted or request.found):
            return _refuse("the name of a cell's ResourceClaim must be instance-<Instance name>")
        if request.wanted is not None and not asks_for_ours_alone(request.wanted):
            return _refuse(f"a cell's ResourceClaim must ask for {OUR_RESOURCES}* alone")
        if request.found is not None and not is_own and not asks_for_ours_alone(request.found):
            return _refuse("the ResourceClaim belongs to another service")
        return None


@dataclass(frozen=True, slots=True)
class CityClaims:
    """Names of slots that end in a city are for the cell of that city."""

    cell: str
    city: str  # as names have it

    def __call__(self, request: AdmissionRequest) -> Denial | None:
        user = request.user.name
        if not user.startswith(CELL_USER) or user == f"{CELL_USER}{self.cell}":
            return None
        owner = string_map_at(request.found, "metadata", "labels").get(labels.SOURCE_CLUSTER, "")
        if owner and owner == user.removeprefix(CELL_USER):
            return None
        claim = request.wanted or request.found
        instance = names.parse_claim_name(string_at(claim, "metadata", "name"))
        slot = None if instance is None else names.parse_instance_name(instance)
        if slot is None or not slot[0].endswith(f"-{self.city}") or slot[0] == f"-{self.city}":
            return None
        return _refuse(
            f"the name of the ResourceClaim is that of a slot in city {self.city}, "
            f"which cell {self.cell} serves"
        )


def judge_management(request: AdmissionRequest) -> Denial | None:
    """The management operator removes claims of slots that name a cell, and writes none."""
    if request.user.name != MANAGEMENT_USER:
        return None
    if request.operation != "DELETE" or request.found is None:
        return _refuse("the management operator only removes ResourceClaims")
    if not string_map_at(request.found, "metadata", "labels").get(labels.SOURCE_CLUSTER):
        return _refuse("the ResourceClaim names no cell")
    if not names_slot(request.found):
        return _refuse("the name of the ResourceClaim is not instance-<Instance name>")
    if not asks_for_ours_alone(request.found):
        return _refuse("the ResourceClaim belongs to another service")
    return None


def names_slot(claim: JsonObject | None) -> bool:
    """Whether a claim's name is `instance-<Instance name>`."""
    instance = names.parse_claim_name(string_at(claim, "metadata", "name"))
    return instance is not None and names.parse_instance_name(instance) is not None


def asks_for_ours_alone(claim: JsonObject) -> bool:
    """Whether all resources a claim asks for are compute's."""
    asked = [string_at(one, "resourceType") for one in objects_at(claim, "spec", "requests")]
    return all(one.startswith(OUR_RESOURCES) for one in asked)


def _refuse(message: str) -> Denial:
    return Denial(message, _FORBIDDEN)


def make_forms(cities: Mapping[str, str] = TEMPLATE) -> dict[str, PolicyForm]:
    """What a plane is given (`PlaneParts.policies`, `MiloParts.policies`) to take the policies;
    `cities` are the city codes by cell, for the policies that `deploy/milo/cells` has per cell.
    """
    forms: dict[str, PolicyForm] = {
        "compute-cell-instances": OwnSlotsOnly(
            OwnObjectsOnly(
                labels.CELL,
                "Instance",
                PROJECT_NAMESPACE,
                "a cell writes Instances only in namespaces of projects (ns-…)",
            )
        ),
        "compute-cell-claims": SlotClaimsOnly(
            OwnObjectsOnly(labels.SOURCE_CLUSTER, "ResourceClaim")
        ),
        "compute-management-claims": judge_management,
    }
    for cell, city in cities.items():
        # The template itself has a word in place of a city, and reserves nothing.
        code = city if cell in TEMPLATE else names.sanitise(city)
        forms[f"compute-city-claims-{cell}"] = CityClaims(cell, code)
    return forms
