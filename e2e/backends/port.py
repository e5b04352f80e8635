"""What a backend owes the world: time, requests, processes, links, neighbours, and a record.

Small on purpose: a scenario's words are made of these in `e2e/world.py`, once for all backends.
Planes, operators and people go by name:

```
planes     root · home · hub · one per project and per cell, under its own name
operators  management · one per cell, under the cell's name
people     tenant (of a project) · admin · anybody a scenario wants to be, by user name
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol, runtime_checkable

from compute_api_types.wire import JsonObject, JsonValue
from e2e.kinds import Kind

ROOT: Final = "root"
HOME: Final = "home"
HUB: Final = "hub"
MANAGEMENT: Final = "management"
ADMIN: Final = "admin"
TENANT: Final = "tenant"


@dataclass(frozen=True, slots=True)
class Cell:
    """One POP: a name, the city its Cluster is labelled with, what its operator is told of it."""

    name: str
    city: str
    says_city: bool = True  # `cell.cityCode` is in its operator's configuration


DFW: Final = Cell("dfw-1", "DFW")
ORD: Final = Cell("ord-1", "ORD")
# The one plane of a single cluster, which serves whatever city it is asked for.
SINGLE: Final = Cell("single", "DFW")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a scenario needs of its world; the letters of `docs/spec/operations.md` 9."""

    projects: int = 1  # P
    # Spends, cuts off or takes away its projects: they are made for it on planes that are shared.
    has_own_projects: bool = False
    cells: tuple[Cell, ...] = (DFW,)  # D, O
    has_quota: bool = False  # Q
    has_networking: bool = True
    runs_cells: bool = True  # False: cells are members without an operator
    replicas: int = 1  # of each operator
    is_single: bool = False  # one plane is everything: `deploy/single-cluster`
    expects_errors: bool = False  # what it does on purpose is logged at ERROR
    is_alone: bool = False  # cuts, stops or relabels what others share
    is_slow: bool = False  # waits for a minute or more of wall time on real planes
    # Fields of the operators' configuration that a scenario is about: `{"management": {…}}`.
    settings: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])


@dataclass(frozen=True, slots=True)
class Place:
    """A project and the namespace a scenario has in it."""

    project: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a plane."""

    method: str
    target: str
    body: JsonValue = None
    media: str = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """Its answer; `retry_after` where the server names a pause."""

    status: int
    body: JsonObject
    retry_after: timedelta | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Audited:
    """One request of somebody, as the plane saw it."""

    at: datetime
    who: str  # operator, neighbour or person, as named in this module
    agent: str
    plane: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    status: int

    @property
    def is_write(self) -> bool:
        return self.verb in {"create", "update", "patch", "delete", "deletecollection"} and (
            self.group not in {"authentication.k8s.io", "authorization.k8s.io"}
        )


@dataclass(frozen=True, slots=True)
class Version:
    """One state of an object; `object` is its last one where the change is its end."""

    at: datetime
    is_gone: bool
    object: JsonObject


@dataclass(frozen=True, slots=True)
class Run:
    """How a command ended and what it printed."""

    code: int
    output: str


class Backend(Protocol):
    """One world under a scenario."""

    @property
    def name(self) -> str:
        """`sim`, `real`, …: which of a limit's two times counts."""
        ...

    @property
    def places(self) -> Sequence[Place]: ...

    # time ----------------------------------------------------------------------------------------

    def now(self) -> datetime: ...

    async def sleep(self, delay: timedelta) -> None: ...

    # planes --------------------------------------------------------------------------------------

    async def add_project(self, name: str) -> Place:
        """One more project, Ready, furnished like the others."""
        ...

    async def send(self, plane: str, who: str, call: Call) -> Reply: ...

    def audit(self) -> Sequence[Audited]:
        """Everything that operators and neighbours asked of planes, and what people wrote."""
        ...

    def leave(self, plane: str, kind: Kind, key: str) -> None:
        """Says that an object was made by hand and stays: it has no root that could live."""
        ...

    def write_off(self, cell: str) -> None:
        """Says that a cell is gone for good: what it still holds is out of everybody's reach."""
        ...

    def versions(self, plane: str, kind: Kind, namespace: str) -> Sequence[Version]:
        """Every version of the objects of a kind since the scenario began, in order."""
        ...

    # operators -----------------------------------------------------------------------------------

    async def start(self, operator: str, settings: JsonObject | None = None) -> None:
        """Starts every replica of an operator; `settings` lie over its configuration."""
        ...

    async def stop(self, operator: str) -> None:
        """As on SIGTERM, all replicas; returns when they have ended."""
        ...

    async def kill(self, operator: str) -> None:
        """As on SIGKILL, all replicas."""
        ...

    async def freeze_leader(self, operator: str) -> None:
        """As on SIGSTOP, the replica that leads."""
        ...

    async def thaw(self, operator: str) -> None: ...

    def metric(self, operator: str, name: str, labels: Mapping[str, str]) -> float:
        """The sum of a metric's series that carry these labels, over replicas; 0 for none."""
        ...

    # links ---------------------------------------------------------------------------------------

    async def cut(self, operator: str, plane: str) -> None: ...

    async def slow(self, operator: str, plane: str, delay: timedelta) -> None: ...

    async def heal(self, operator: str, plane: str) -> None: ...

    async def cut_member(self, cell: str) -> None:
        """Karmada loses a member; what runs there goes on."""
        ...

    async def heal_member(self, cell: str) -> None: ...

    # neighbours ----------------------------------------------------------------------------------

    async def pause_quota(self) -> None: ...

    async def resume_quota(self) -> None: ...

    async def set_grant(self, project: str, instances: int) -> None:
        """What a project may run: so many instances of the size of the fixture."""
        ...

    async def set_networking(self, cell: str, knobs: NetworkKnobs) -> None: ...

    async def uninstall_networking(self, plane: str) -> None: ...

    async def install_networking(self, plane: str) -> None: ...

    async def set_webhook(self, *, is_up: bool) -> None:
        """Whether anybody answers at the address of the admission webhook."""
        ...

    async def decommission(self, *arguments: str) -> Run:
        """Runs `compute-cell-operator decommission` under role G."""
        ...


@runtime_checkable
class HasPods(Protocol):
    """What a backend adds on which operators are pods: what befalls a pod, and its node."""

    def pod_names(self, operator: str) -> Sequence[str]:
        """Those that are there to stay."""
        ...

    async def leader(self, operator: str) -> str:
        """The pod that its Lease names."""
        ...

    async def begin_roll(self, operator: str) -> None:
        """A new version comes: new pods for old."""
        ...

    async def await_ready(self, operator: str) -> None:
        """Until every pod is there and ready, and none of the old ones is left."""
        ...

    async def delete_pod(self, operator: str, pod: str) -> None: ...

    async def evict(self, operator: str, pod: str) -> None:
        """As draining a node does."""
        ...

    async def reboot_node(self, operator: str) -> None:
        """The node of an operator loses power and gets it back."""
        ...

    async def exhaust_memory(self, operator: str) -> str:
        """The container meets its memory limit; how its end is called."""
        ...

    async def expire_token(self, operator: str, plane: str) -> None:
        """Its token for a plane is over, and nobody writes a new one until `rotate_tokens`."""
        ...

    async def rotate_tokens(self, operator: str) -> None: ...


@dataclass(frozen=True, slots=True)
class NetworkKnobs:
    """How NSO fares in a cell."""

    context_delay: timedelta = timedelta(seconds=1)
    failure: str = ""
