"""The `Backend` protocol: what each backend implements for scenarios to run on it.

It covers time, requests, operator processes, network links, external systems and the audit trail.
`e2e/world/scenario.py` builds the scenario API on it once for all backends, so a scenario cannot
depend on one of them. Planes, operators and users are addressed by name:

```
planes     root · home · hub · one per project and per cell, under its own name
operators  management · one per cell, under the cell's name · its pod provider (`name_provider`)
users      tenant (of a project) · admin · any other user name
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol, runtime_checkable

from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.kinds import Kind

ROOT: Final = "root"
HOME: Final = "home"
HUB: Final = "hub"
MANAGEMENT: Final = "management"
ADMIN: Final = "admin"
TENANT: Final = "tenant"
# Has the rights of `deploy/components/diagnostics` on every plane, and no others.
DIAGNOSER: Final = "person:diagnosing"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its name and the city code on its Cluster."""

    name: str
    city: str
    has_city_setting: bool = True  # its operator's configuration has `cell.cityCode`


DFW: Final = Cell("dfw-1", "DFW")
ORD: Final = Cell("ord-1", "ORD")
# The plane of single-cluster mode. It serves every city code.
SINGLE: Final = Cell("single", "DFW")


def name_provider(cell: str) -> str:
    """The pod provider of a cell, as an operator of backends with pods."""
    return f"{cell}-provider"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a scenario requires of its backend; the letters are those of `docs/spec/operations.md`
    9.
    """

    projects: int = 1  # P
    # The scenario uses up quota of its projects, cuts them off or deletes them: on shared planes it
    # gets projects of its own.
    has_own_projects: bool = False
    cells: tuple[Cell, ...] = (DFW,)  # D, O
    has_quota: bool = False  # Q
    has_networking: bool = True
    runs_cells: bool = True  # False: cells are members without an operator
    replicas: int = 1  # of each operator
    is_single: bool = False  # one plane for project and cell: `deploy/single-cluster`
    reads_data: bool = False  # operators may read ConfigMaps and Secrets: `referencedData: on`
    expects_errors: bool = False  # the scenario causes ERROR log lines on purpose
    is_alone: bool = False  # cuts, stops or relabels what scenarios share
    is_slow: bool = False  # waits a minute or more of wall time on real planes
    # Operator configuration under test, merged over the shipped one: `{"management": {…}}`.
    settings: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])


@dataclass(frozen=True, slots=True)
class ProjectNamespace:
    """A project and the scenario's namespace in it."""

    project: str
    namespace: str


@dataclass(frozen=True, slots=True)
class PlaneRequest:
    """One request to a plane."""

    method: str
    target: str
    body: JsonValue = None
    media: str = "application/json"


@dataclass(frozen=True, slots=True)
class PlaneResponse:
    """The response to a request; `retry_after` is the server's Retry-After."""

    status: int
    body: JsonObject
    retry_after: timedelta | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """One request as the plane recorded it."""

    at: datetime
    user: str  # operator, external system or user, by the names of this module
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
class ObjectVersion:
    """One version of an object; for a deletion, `object` is the last version before it."""

    at: datetime
    is_gone: bool
    object: JsonObject


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    output: str


class Backend(Protocol):
    """The planes and operators below one scenario."""

    @property
    def name(self) -> str:
        """`sim`, `real`, …; selects which time of a `Limit` applies."""
        ...

    @property
    def project_namespaces(self) -> Sequence[ProjectNamespace]: ...

    # time ----------------------------------------------------------------------------------------

    def now(self) -> datetime: ...

    async def sleep(self, delay: timedelta) -> None: ...

    # planes --------------------------------------------------------------------------------------

    async def add_project(self, name: str) -> ProjectNamespace:
        """Adds a project with the objects that the others have, and waits until it is Ready."""
        ...

    async def send(self, plane: str, user: str, call: PlaneRequest) -> PlaneResponse: ...

    def audit(self) -> Sequence[AuditedRequest]:
        """All requests of operators and external systems, and the writes of users."""
        ...

    def leave(self, plane: str, kind: Kind, key: str) -> None:
        """Exempts a manually created object from the orphan oracle: it has no root object."""
        ...

    def write_off(self, cell: str) -> None:
        """Marks a cell as permanently lost, so that oracles ignore the objects left on it."""
        ...

    def versions(self, plane: str, kind: Kind, namespace: str) -> Sequence[ObjectVersion]:
        """Every version of the objects of a kind since the scenario began, in order."""
        ...

    # operators -----------------------------------------------------------------------------------

    async def start(self, operator: str, settings: JsonObject | None = None) -> None:
        """Starts every replica of an operator; `settings` are merged over its configuration."""
        ...

    async def stop(self, operator: str) -> None:
        """Sends SIGTERM to all replicas, or its equivalent, and waits until they have ended."""
        ...

    async def kill(self, operator: str) -> None:
        """Sends SIGKILL to all replicas, or its equivalent."""
        ...

    async def freeze_leader(self, operator: str) -> None:
        """Sends SIGSTOP to the leading replica, or its equivalent."""
        ...

    async def thaw(self, operator: str) -> None: ...

    def metric(self, operator: str, name: str, labels: Mapping[str, str]) -> float:
        """The sum over replicas of the series with these labels; 0 if there is none."""
        ...

    # links ---------------------------------------------------------------------------------------

    async def cut(self, operator: str, plane: str) -> None: ...

    async def slow(self, operator: str, plane: str, delay: timedelta) -> None: ...

    async def heal(self, operator: str, plane: str) -> None: ...

    async def cut_member(self, cell: str) -> None:
        """Cuts Karmada's connection to a member; workloads there keep running."""
        ...

    async def heal_member(self, cell: str) -> None: ...

    # external systems ----------------------------------------------------------------------------

    async def pause_quota(self) -> None: ...

    async def resume_quota(self) -> None: ...

    async def set_grant(self, project: str, instances: int) -> None:
        """Sets a project's quota to `instances` Instances of the fixture's size."""
        ...

    def running(self, cell: str) -> frozenset[str]:
        """UIDs of the Instances that the provider of a cell runs."""
        ...

    async def set_networking(self, cell: str, options: NetworkOptions) -> None: ...

    async def uninstall_networking(self, plane: str) -> None: ...

    async def install_networking(self, plane: str) -> None: ...

    async def set_webhook(self, *, is_up: bool) -> None:
        """Opens or closes the endpoint of the admission webhook."""
        ...

    async def decommission(self, *arguments: str) -> CommandResult:
        """Runs `compute-cell-operator decommission` under role G."""
        ...

    async def diagnose(
        self, words: Sequence[str], contexts: Sequence[str], user: str
    ) -> CommandResult:
        """Runs `kubectl compute` with a kubeconfig that has a context of that user for each of the
        planes; the first one is the current one.
        """
        ...


@runtime_checkable
class HasPods(Protocol):
    """Operations of backends that run operators as pods: disruptions of a pod and of its node."""

    def pod_names(self, operator: str) -> Sequence[str]:
        """Pods of the operator that are not being deleted."""
        ...

    async def leader(self, operator: str) -> str:
        """The pod that holds the operator's Lease."""
        ...

    async def begin_roll(self, operator: str) -> None:
        """Starts a rolling update: every pod is replaced."""
        ...

    async def run_version(self, operator: str, *, is_previous: bool) -> None:
        """Replaces every pod by one of the previous version, or of this one, and waits for it."""
        ...

    async def await_ready(self, operator: str) -> None:
        """Waits until every desired pod is ready and no old pod is left."""
        ...

    async def delete_pod(self, operator: str, pod: str) -> None: ...

    async def evict(self, operator: str, pod: str) -> None:
        """Evicts a pod, as `kubectl drain` does."""
        ...

    async def reboot_node(self, operator: str) -> None:
        """Power-cycles the operator's node."""
        ...

    async def silence_node(self, operator: str) -> None:
        """Stops the kubelet of the operator's node until `wake_node`; containers run on."""
        ...

    async def wake_node(self, operator: str) -> None: ...

    async def exhaust_memory(self, operator: str) -> str:
        """Uses up the container's memory limit; returns the reason of its termination."""
        ...

    async def expire_token(self, operator: str, plane: str) -> None:
        """Replaces the operator's token for a plane by an expired one until `rotate_tokens`."""
        ...

    async def rotate_tokens(self, operator: str) -> None: ...

    async def ask(self, address: str, path: str = "/") -> str:
        """What a container of an Instance answers by HTTP; empty where none answers. It uses all
        of its CPU from `/burn` until `/rest`.
        """
        ...

    async def measure_pods(self, cell: str) -> None:
        """Serves what the containers of a cell use as metrics of their Pods."""
        ...

    async def kill_container(self, cell: str, container: str) -> None:
        """Kills the processes of a container, as the kernel does to one that it has to end."""
        ...

    def count_processes(self, cell: str, container: str) -> int:
        """Processes of a container, by the container id in its Pod's status."""
        ...


@runtime_checkable
class HasAutoscalers(Protocol):
    """Operations of backends on which a controller of HorizontalPodAutoscalers scales by a load
    that a scenario sets.
    """

    async def start_autoscalers(self, cell: str) -> None:
        """Gives a cell metrics of Pods; without it, no autoscaler there moves a number."""
        ...

    def set_load(self, cell: str, deployment: str, replicas: int) -> None:
        """How many replicas the load of a deployment asks for, in every namespace."""
        ...

    def set_pod_metrics(self, cell: str, *, is_up: bool) -> None:
        """Whether the cell serves the metrics of its Pods."""
        ...


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """How the simulated network services operator behaves in a cell."""

    context_delay: timedelta = timedelta(seconds=1)
    failure: str = ""
