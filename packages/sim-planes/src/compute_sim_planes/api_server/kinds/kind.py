"""A served kind in one version: names, scope, rules, schema.

One value per (group, version, kind), from a table for built-in kinds and from a CRD for others.
Kinds are compared by identity: when a CRD changes the served form, it gets new values, and
everything encoded under the old ones is decoded again with the new schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from typing_extensions import override

from compute_sim_planes.api_server.schema.compiled import CompiledSchema
from compute_sim_planes.json_types import JsonObject, JsonValue

ALL_VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
)  # fmt: skip


class GroupResource(NamedTuple):
    """A resource regardless of version; its string form is that of error messages."""

    group: str
    resource: str

    @override
    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One column of `kubectl get`."""

    name: str
    type: str
    json_path: str
    priority: int = 0
    description: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the subresource `scale` finds its values; a path is a tuple of member names."""

    replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind in one served version, compared by identity (see the module docstring)."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    has_status: bool = False
    # Subresources besides `status`.
    subresources: tuple[str, ...] = ()
    scale: ScalePaths | None = None  # of the subresource `scale`
    tracks_generation: bool = True
    # Whether a PUT may omit the resourceVersion; kinds from CRDs never allow it.
    unconditional_update: bool = False
    # Whether a PUT to an absent name creates the object (Leases, RBAC and a few others).
    create_on_update: bool = False
    # Whether a completed delete returns the object instead of a Status.
    returns_deleted: bool = False
    built_in: bool = False
    schema: CompiledSchema | None = None
    schema_document: JsonObject | None = None
    # The status that reads show for an object without one.
    default_status: JsonValue = None
    columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    group_resource: GroupResource = field(init=False)
    api_version: str = field(init=False)

    def __post_init__(self) -> None:
        # Set once, because both are read on every request.
        object.__setattr__(self, "group_resource", GroupResource(self.group, self.plural))
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)
