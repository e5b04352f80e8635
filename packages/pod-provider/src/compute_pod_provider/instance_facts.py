"""Typed view of an Instance document: the members that plan, status and render decide by.

Instances reach this cluster past no admission of ours: every member may be missing or of another
type. A member that cannot be read is read as the state in which nothing is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from compute_api_types import conditions, labels
from compute_api_types.conditions import ObservedCondition
from compute_api_types.meta import TimestampError, parse_timestamp
from compute_api_types.problems import MalformedObjectError
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.wire import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that is no Instance; `path` names the first wrong field."""

    path: str


@dataclass(frozen=True, slots=True)
class ObservedInstance:
    """One Instance as it was read."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    has_finalizer: bool
    deleted_at: datetime | None
    is_gated: bool
    is_suspended: bool
    has_sandbox: bool
    has_virtual_machine: bool
    interfaces: int  # how many the spec has
    status: Mapping[str, JsonValue]
    parsed: Instance | Unreadable

    @property
    def is_deleting(self) -> bool:
        return self.deleted_at is not None

    @property
    def available(self) -> ObservedCondition | None:
        return conditions.find(conditions.read(self.status), conditions.AVAILABLE)


def read_instance(document: Mapping[str, JsonValue]) -> ObservedInstance:
    """The view of a document of any shape."""
    metadata = object_at(document, "metadata")
    spec = object_at(document, "spec")
    runtime = object_at(spec, "runtime")
    controller = object_at(spec, "controller")
    status = object_at(document, "status")
    interfaces = spec.get("networkInterfaces")
    return ObservedInstance(
        namespace=text_at(metadata, "namespace"),
        name=text_at(metadata, "name"),
        uid=text_at(metadata, "uid"),
        resource_version=text_at(metadata, "resourceVersion"),
        generation=integer_at(metadata, "generation"),
        has_finalizer=labels.POD_PROVIDER_FINALIZER in texts_at(metadata, "finalizers"),
        deleted_at=time_at(metadata, "deletionTimestamp"),
        # Any content of another type than a list counts as a gate: nothing starts behind it.
        is_gated=controller.get("schedulingGates") not in (None, []),
        is_suspended=status.get("suspended") is True,
        has_sandbox=isinstance(runtime.get("sandbox"), dict),
        has_virtual_machine=isinstance(runtime.get("virtualMachine"), dict),
        interfaces=len(interfaces) if isinstance(interfaces, list) else 0,
        status=status,
        parsed=_parse(document),
    )


def _parse(document: Mapping[str, JsonValue]) -> Instance | Unreadable:
    # Status is left out: a foreign condition must not stop the Instance.
    wanted = {key: value for key, value in document.items() if key != "status"}
    try:
        return Instance.read(wanted)
    except MalformedObjectError as malformed:
        return Unreadable(malformed.problems[0].path)


# --- members of documents of any shape ------------------------------------------------------------


def object_at(document: Mapping[str, JsonValue], name: str) -> JsonObject:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def text_at(document: Mapping[str, JsonValue], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def texts_at(document: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    value = document.get(name)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def objects_at(document: Mapping[str, JsonValue], name: str) -> tuple[JsonObject, ...]:
    value = document.get(name)
    return (
        tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
    )


def integer_at(document: Mapping[str, JsonValue], name: str) -> int:
    value = document.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def time_at(document: Mapping[str, JsonValue], name: str) -> datetime | None:
    try:
        return parse_timestamp(text_at(document, name))
    except TimestampError:
        return None
