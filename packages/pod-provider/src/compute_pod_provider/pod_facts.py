"""Typed view of a Pod document: what kubelet, the scheduler and the node controller report.

Messages of kubelet contain text of registries and tenants: they are cut before anything is derived
from them, so that an endless message costs no memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import (
    integer_at,
    object_at,
    objects_at,
    text_at,
    time_at,
)

LONGEST: Final = 2000  # characters of a foreign message that are looked at
LONGEST_WORD: Final = 200  # of a reason or a name in a message


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a container ended."""

    reason: str
    exit_code: int
    message: str


@dataclass(frozen=True, slots=True)
class ObservedContainer:
    """One container with its state; exactly one of waiting, running and ended, or none."""

    name: str
    image: str
    is_init: bool
    restarts: int
    memory: str  # its limit
    waiting: str = ""  # the reason
    message: str = ""  # of the waiting state
    running_since: datetime | None = None
    end: ContainerEnd | None = None
    last_end: ContainerEnd | None = None

    @property
    def has_started(self) -> bool:
        """Whether its program has run once; one that could not be started has not."""
        if self.running_since is not None:
            return True
        ended = self.end or self.last_end
        return ended is not None and ended.reason not in NEVER_RAN


NEVER_RAN: Final = frozenset({"StartError", "ContainerCannotRun"})


@dataclass(frozen=True, slots=True)
class PodCondition:
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """One Pod as it was read."""

    name: str
    uid: str
    controller_uid: str
    created_at: datetime | None
    is_deleting: bool
    phase: str
    reason: str
    message: str
    conditions: Mapping[str, PodCondition]
    has_readiness_gates: bool
    containers: tuple[ObservedContainer, ...]  # injected init containers first
    addresses: tuple[str, ...]
    template_hash: str

    def has_condition(self, name: str, status: str) -> bool:
        condition = self.conditions.get(name)
        return condition is not None and condition.status == status

    @property
    def has_started(self) -> bool:
        """Whether every container has run once."""
        return bool(self.containers) and all(
            one.has_started for one in self.containers if not one.is_init
        )

    @property
    def has_ended(self) -> bool:
        return self.phase in {"Failed", "Succeeded"}


@dataclass(frozen=True, slots=True)
class NoPod:
    """The cluster has no Pod of that name."""


NO_POD: Final = NoPod()


def read_pod(document: Mapping[str, JsonValue]) -> ObservedPod:
    metadata = object_at(document, "metadata")
    spec = object_at(document, "spec")
    status = object_at(document, "status")
    return ObservedPod(
        name=text_at(metadata, "name"),
        uid=text_at(metadata, "uid"),
        controller_uid=derive_controller_uid(document),
        created_at=time_at(metadata, "creationTimestamp"),
        is_deleting="deletionTimestamp" in metadata,
        phase=text_at(status, "phase"),
        reason=text_at(status, "reason")[:LONGEST_WORD],
        message=text_at(status, "message")[:LONGEST],
        conditions=_conditions(status),
        has_readiness_gates=bool(spec.get("readinessGates")),
        containers=(
            *_containers(spec, status, "initContainers", "initContainerStatuses"),
            *_containers(spec, status, "containers", "containerStatuses"),
        ),
        addresses=_addresses(status),
        template_hash=text_at(
            object_at(metadata, "annotations"), "compute.datumapis.com/template-hash"
        ),
    )


def derive_controller_uid(document: Mapping[str, JsonValue]) -> str:
    """The UID of the owner that controls the Pod; "" without one."""
    owners = objects_at(object_at(document, "metadata"), "ownerReferences")
    return next((text_at(owner, "uid") for owner in owners if owner.get("controller") is True), "")


def _conditions(status: JsonObject) -> dict[str, PodCondition]:
    return {
        text_at(one, "type"): PodCondition(text_at(one, "status"), text_at(one, "reason"))
        for one in objects_at(status, "conditions")
    }


def _addresses(status: JsonObject) -> tuple[str, ...]:
    listed = tuple(text_at(one, "ip") for one in objects_at(status, "podIPs"))
    return tuple(ip for ip in listed or (text_at(status, "podIP"),) if ip)


def _containers(
    spec: JsonObject, status: JsonObject, listed: str, reported: str
) -> tuple[ObservedContainer, ...]:
    """Every container of the spec, in its order, with the state that kubelet reports."""
    states = {text_at(one, "name"): one for one in objects_at(status, reported)}
    return tuple(
        _container(one, states.get(text_at(one, "name"), {}), is_init=listed == "initContainers")
        for one in objects_at(spec, listed)
    )


def _container(spec: JsonObject, reported: JsonObject, *, is_init: bool) -> ObservedContainer:
    state = object_at(reported, "state")
    waiting = object_at(state, "waiting")
    running = object_at(state, "running")
    return ObservedContainer(
        name=text_at(spec, "name"),
        image=text_at(spec, "image")[:LONGEST_WORD],
        # An init container that restarts for ever is a sidecar: it runs beside the others.
        is_init=is_init and text_at(spec, "restartPolicy") != "Always",
        restarts=integer_at(reported, "restartCount"),
        memory=text_at(object_at(object_at(spec, "resources"), "limits"), "memory"),
        waiting=text_at(waiting, "reason")[:LONGEST_WORD],
        message=text_at(waiting, "message")[:LONGEST],
        running_since=time_at(running, "startedAt"),
        end=_end(state, "terminated"),
        last_end=_end(object_at(reported, "lastState"), "terminated"),
    )


def _end(state: JsonObject, name: str) -> ContainerEnd | None:
    if name not in state:
        return None
    ended = object_at(state, name)
    return ContainerEnd(
        text_at(ended, "reason")[:LONGEST_WORD],
        integer_at(ended, "exitCode"),
        text_at(ended, "message")[:LONGEST],
    )


def find_mount_failure(events: tuple[JsonObject, ...]) -> str:
    """The message of the newest FailedMount Event; "" without one (row 8)."""
    failed = [one for one in events if text_at(one, "reason") == "FailedMount"]
    newest = max(failed, key=lambda one: text_at(one, "lastTimestamp"), default=None)
    return text_at(newest, "message")[:LONGEST] if newest else ""
