"""A kind as a plane serves it in one version: names, scope, rules, schema.

One value per (group, version, kind), made from a table for built-in kinds and from a CRD for the
others. It is compared by identity: a CRD whose served form changed gets new values, and everything
encoded under the old ones is read again through the new schema. It holds no objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from typing_extensions import override

from compute_sim_planes.api_server.schema import CompiledSchema
from compute_sim_planes.json_types import JsonObject, JsonValue

ALL_VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
)  # fmt: skip


class GroupResource(NamedTuple):
    """What identifies a kind regardless of version; spelled as in error texts."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind in one served version; see the module's text for its identity."""

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
    # Further subresources that are served for this kind, beside `status`.
    subresources: tuple[str, ...] = ()
    tracks_generation: bool = True
    # Whether a PUT may leave the resourceVersion out; kinds from CRDs never allow it.
    unconditional_update: bool = False
    # Whether a PUT to an absent name creates it (Leases, RBAC and a few others do).
    create_on_update: bool = False
    # Whether a finished delete answers with the object instead of a Status.
    returns_deleted: bool = False
    built_in: bool = False
    schema: CompiledSchema | None = None
    schema_document: JsonObject | None = None
    # What reads show as the status of an object that has none.
    default_status: JsonValue = None
    columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    group_resource: GroupResource = field(init=False)
    api_version: str = field(init=False)

    def __post_init__(self) -> None:
        # A frozen value sets its derived fields once, here, because both are read on every request.
        object.__setattr__(self, "group_resource", GroupResource(self.group, self.plural))
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)

    @property
    def qualified_kind(self) -> str:
        """The kind with its group, as validation errors name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind
