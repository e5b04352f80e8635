"""The planes of a snapshot by their role, each with the listings that were read of it.

A plane that was not asked has the same fields as one that was read, all `NOT_ASKED`: a decision
distinguishes them by `Access`, never by a missing plane.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from compute_kubectl.snapshot.access import NOT_LISTED, Access, Listing
from compute_kubectl.snapshot.objects import (
    SeenBinding,
    SeenBucket,
    SeenClaim,
    SeenCluster,
    SeenDeployment,
    SeenEvent,
    SeenInstance,
    SeenLocation,
    SeenNetworkObject,
    SeenObject,
    SeenPod,
    SeenPolicy,
    SeenWorkload,
)

# A clock that is further off makes ages of that plane's objects wrong.
LARGEST_SKEW: Final = timedelta(seconds=30)

_UNANSWERED: Final = frozenset({Access.REFUSED, Access.NOT_SERVED, Access.UNREACHABLE})


class Role(StrEnum):
    """What a plane is to the Workload."""

    PROJECT = "project"
    HUB = "hub"
    CELL = "cell"


@dataclass(frozen=True, slots=True)
class PlaneFacts:
    """Name, role and clock of one plane, and how reading it ended as a whole."""

    name: str
    role: Role
    access: Access = Access.NOT_ASKED
    detail: str = ""
    at: datetime | None = None
    skew: timedelta | None = None

    @property
    def is_skewed(self) -> bool:
        return self.skew is not None and abs(self.skew) > LARGEST_SKEW


@dataclass(frozen=True, slots=True)
class ProjectPlane:
    """A project: what its tenant wrote and sees."""

    facts: PlaneFacts = field(default_factory=lambda: PlaneFacts("project", Role.PROJECT))
    namespaces: Listing[SeenObject] = NOT_LISTED
    workloads: Listing[SeenWorkload] = NOT_LISTED
    deployments: Listing[SeenDeployment] = NOT_LISTED
    instances: Listing[SeenInstance] = NOT_LISTED
    claims: Listing[SeenClaim] = NOT_LISTED
    buckets: Listing[SeenBucket] = NOT_LISTED
    events: Listing[SeenEvent] = NOT_LISTED


@dataclass(frozen=True, slots=True)
class HubPlane:
    """The Karmada hub: copies, policies, bindings and members."""

    facts: PlaneFacts = field(default_factory=lambda: PlaneFacts("hub", Role.HUB))
    namespaces: Listing[SeenObject] = NOT_LISTED
    deployments: Listing[SeenDeployment] = NOT_LISTED
    instances: Listing[SeenInstance] = NOT_LISTED
    policies: Listing[SeenPolicy] = NOT_LISTED
    bindings: Listing[SeenBinding] = NOT_LISTED
    clusters: Listing[SeenCluster] = NOT_LISTED
    events: Listing[SeenEvent] = NOT_LISTED


@dataclass(frozen=True, slots=True)
class CellPlane:
    """One cell, under the name of its Karmada Cluster."""

    facts: PlaneFacts
    deployments: Listing[SeenDeployment] = NOT_LISTED
    instances: Listing[SeenInstance] = NOT_LISTED
    network_bindings: Listing[SeenNetworkObject] = NOT_LISTED
    network_contexts: Listing[SeenNetworkObject] = NOT_LISTED
    subnet_claims: Listing[SeenNetworkObject] = NOT_LISTED
    subnets: Listing[SeenNetworkObject] = NOT_LISTED
    locations: Listing[SeenLocation] = NOT_LISTED
    pods: Listing[SeenPod] = NOT_LISTED
    events: Listing[SeenEvent] = NOT_LISTED

    @property
    def name(self) -> str:
        return self.facts.name


@dataclass(frozen=True, slots=True)
class Unread:
    """A kind that could not be read on a plane that was asked."""

    plane: str
    kind: str
    access: Access
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that was read for one question about one namespace of one project."""

    namespace: str
    at: datetime
    project: ProjectPlane = field(default_factory=ProjectPlane)
    hub: HubPlane = field(default_factory=HubPlane)
    cells: Mapping[str, CellPlane] = field(default_factory=dict[str, CellPlane])

    @property
    def planes(self) -> tuple[PlaneFacts, ...]:
        cells = (self.cells[name].facts for name in sorted(self.cells))
        return (self.project.facts, self.hub.facts, *cells)

    @property
    def unread(self) -> tuple[Unread, ...]:
        """What was asked for and not answered: refused, not served, unreachable."""
        found: list[Unread] = []
        planes: list[ProjectPlane | HubPlane | CellPlane] = [self.project, self.hub]
        for plane in (*planes, *(self.cells[one] for one in sorted(self.cells))):
            if plane.facts.access in {Access.UNREACHABLE, Access.REFUSED}:
                found.append(Unread(plane.facts.name, "", plane.facts.access, plane.facts.detail))
                continue
            for kind in fields(plane):
                listing = getattr(plane, kind.name)
                if isinstance(listing, Listing) and listing.access in _UNANSWERED:
                    word = kind.name.replace("_", " ")
                    found.append(Unread(plane.facts.name, word, listing.access, listing.detail))
        return tuple(found)

    @property
    def namespace_uid(self) -> str:
        """The UID of the project namespace; empty where it could not be read."""
        found = (one for one in self.project.namespaces if one.meta.name == self.namespace)
        return next((one.meta.uid for one in found), "")

    def cell(self, name: str) -> CellPlane:
        """A cell by name; one that was not asked where the snapshot has none."""
        return self.cells.get(name) or CellPlane(PlaneFacts(name, Role.CELL))
