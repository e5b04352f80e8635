"""The admission policies that keep cells apart, in Python: simulated planes evaluate no CEL.

`deploy/hub/admission` and `deploy/milo/admission` are the policies; these forms say the same, in
the same order and words, and stand in for them under the same names. A table of requests judges
both, here and on a real API server. What a policy is about (kinds, operations, bindings) is read
from the stored objects and is not repeated here; its match condition is, because that is CEL too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import labels
from compute_sim_planes.api_server.admission import AdmissionRequest
from compute_sim_planes.api_server.policies import Denial, PolicyForm
from compute_sim_planes.json_types import JsonObject, string_map_at

CELL_USER: Final = "compute:cell:"
PROJECT_NAMESPACE: Final = "ns-"
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
        if request.wanted is not None and self._owner(request.wanted) != cell:
            return _refuse(f"label {self.label} must name the cell that writes")
        if self._owner(request.found) not in {"", cell}:
            return _refuse(f"the {self.kind} belongs to another cell")
        return None

    def _owner(self, found: JsonObject | None) -> str:
        """The cell an object names; the label may be absent or empty, which is nobody."""
        return string_map_at(found, "metadata", "labels").get(self.label, "")


def _refuse(message: str) -> Denial:
    return Denial(message, _FORBIDDEN)


def make_forms() -> dict[str, PolicyForm]:
    """What a plane is given (`PlaneParts.policies`, `MiloParts.policies`) to take both policies."""
    return {
        "compute-cell-instances": OwnObjectsOnly(
            labels.CELL,
            "Instance",
            PROJECT_NAMESPACE,
            "a cell writes Instances only in namespaces of projects (ns-…)",
        ),
        "compute-cell-claims": OwnObjectsOnly(labels.SOURCE_CLUSTER, "ResourceClaim"),
    }
