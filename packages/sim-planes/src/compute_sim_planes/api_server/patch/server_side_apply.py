"""Server-side apply, and the field ownership that other writes record.

Fields that a manager applied earlier and no longer applies are removed unless another manager owns
them; changing a value that another manager owns is a conflict. Other writes take ownership of what
they change and never conflict. Pure: the clock is an argument, and versions, defaults and
validation are handled by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from compute_sim_planes.api_server.patch.applied_types import type_problems
from compute_sim_planes.api_server.patch.field_sets import (
    EMPTY,
    FieldSet,
    Path,
    field_step,
    render_path,
    with_ancestors,
)
from compute_sim_planes.api_server.patch.managed_fields import (
    ManagedFieldsOperation,
    Manager,
    Owners,
    VersionedFieldSet,
    make_manager,
    parse_owners,
    print_owners,
    render_manager,
)
from compute_sim_planes.api_server.patch.merge_types import (
    UNOWNED_METADATA,
    derive_root,
)
from compute_sim_planes.api_server.patch.typed_values import (
    compare,
    field_set_of,
    merge,
    remove_paths,
)
from compute_sim_planes.api_server.schema.compiled import CompiledSchema
from compute_sim_planes.api_server.schema.model import Schema
from compute_sim_planes.json_types import JsonObject, JsonValue, array_at, object_at, string_at
from compute_sim_planes.time.sources import render_time

# The owner of all fields of an object without managedFields when it is first applied.
BEFORE_FIRST_APPLY = "before-first-apply"
_METADATA = (field_step("metadata"),)
_UNOWNED: FieldSet = frozenset(
    {(field_step("apiVersion"),), (field_step("kind"),), _METADATA}
    | {(*_METADATA, field_step(name)) for name in UNOWNED_METADATA}
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """One field that another manager owns with another value."""

    manager: Manager
    path: Path

    @property
    def field(self) -> str:
        return render_path(self.path)

    def cause(self) -> JsonObject:
        """The entry in `details.causes` of the 409."""
        message = f"conflict with {render_manager(self.manager)}"
        return {"reason": "FieldManagerConflict", "message": message, "field": self.field}


class ApplyConflictError(Exception):
    """Other managers own fields that this apply would change: 409 unless forced."""

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        super().__init__(_conflict_message(conflicts))
        self.conflicts = conflicts

    @property
    def message(self) -> str:
        return str(self)


class AppliedTypeError(ValueError):
    """The applied configuration does not fit the schema, so its field paths are undefined."""


def _conflict_message(conflicts: tuple[Conflict, ...]) -> str:
    if len(conflicts) == 1:
        (only,) = conflicts
        manager = render_manager(only.manager)
        return f"Apply failed with 1 conflict: conflict with {manager}: {only.field}"
    lines: list[str] = []
    by_manager: dict[str, list[str]] = {}
    for conflict in conflicts:
        by_manager.setdefault(render_manager(conflict.manager), []).append(conflict.field)
    for manager in sorted(by_manager):
        lines += [f"conflicts with {manager}:", *(f"- {path}" for path in by_manager[manager])]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def apply_configuration(  # noqa: PLR0913 -- the request as a real server has it, all named
    existing: JsonObject | None,
    applied: JsonObject,
    *,
    manager: str,
    force: bool,
    schema: CompiledSchema | None,
    now: datetime,
    subresource: str = "",
    resets: frozenset[str] = frozenset(),
) -> JsonObject:
    """The object after the apply, with `managedFields`; equal to `existing` when nothing changed.

    `resets` are top-level fields that this request may neither write nor own: `status` on the main
    resource of a kind with a status subresource, everything else on `/status`.
    """
    live: JsonObject = existing if existing is not None else {"metadata": {}}
    desired = _without_resets(applied, resets)
    root = derive_root(None if schema is None else schema.root, live, desired)
    for problem in type_problems(desired, root):
        raise AppliedTypeError(problem)

    owners = _owners_before_apply(live, root, now)
    me = make_manager(
        manager, ManagedFieldsOperation.APPLY, api_version="", subresource=subresource
    )
    previous = owners.get(me)
    mine = VersionedFieldSet(
        fields=_without_unowned(field_set_of(desired, root)),
        api_version=string_at(applied, "apiVersion"),
        time=render_time(now),
    )
    owners[me] = mine
    before = _without_managed_fields(live)
    merged = _as_object(merge(before, desired, root))
    if previous is not None:
        merged = _remove_abandoned(merged, previous.fields, owners, root)

    difference = compare(before, merged, root)
    conflicts = tuple(_conflicts(owners, me, difference.written))
    if conflicts and not force:
        raise ApplyConflictError(conflicts)
    lost = difference.written | difference.removed
    owners = {other: _less(owned, lost) for other, owned in owners.items()}
    is_settled = difference.is_empty and previous is not None and previous.fields == mine.fields
    # The time is that of the last change; applying the same again must not change the object.
    owners[me] = previous if is_settled and previous is not None else mine
    return _with_owners(merged, owners)


def _without_resets(applied: JsonObject, resets: frozenset[str]) -> JsonObject:
    desired = {key: inner for key, inner in applied.items() if key not in resets}
    return {**desired, "metadata": {}} if "metadata" in resets else desired


def record_update(
    before: JsonObject | None,
    after: JsonObject,
    *,
    manager: str,
    now: datetime,
    subresource: str,
    schema: CompiledSchema | None,
) -> JsonObject:
    """`after` with the ownership of a non-apply write: the writer owns what it changed."""
    earlier: JsonObject = before if before is not None else {"metadata": {}}
    later = _without_managed_fields(after)
    if before is not None and before == after:
        return dict(after)
    root = derive_root(None if schema is None else schema.root, earlier, later)
    difference = compare(_without_managed_fields(earlier), later, root)
    owners = _owners_after_update(earlier, after)
    lost = difference.written | difference.removed
    if lost:
        owners = {other: _less(owned, lost) for other, owned in owners.items()}
    taken = _without_unowned(difference.written)
    if taken:
        version = string_at(after, "apiVersion")
        me = make_manager(
            manager, ManagedFieldsOperation.UPDATE, api_version=version, subresource=subresource
        )
        mine = owners[me].fields if me in owners else EMPTY
        owners[me] = VersionedFieldSet(mine | taken, version, render_time(now))
    return _with_owners(later, owners)


def _owners_before_apply(live: JsonObject, root: Schema, now: datetime) -> Owners:
    owners = parse_owners(array_at(live, "metadata", "managedFields"))
    if owners:
        return owners
    held = _without_unowned(field_set_of(_without_managed_fields(live), root))
    if not held:
        return {}
    version = string_at(live, "apiVersion")
    unknown = make_manager(
        BEFORE_FIRST_APPLY, ManagedFieldsOperation.UPDATE, api_version=version, subresource=""
    )
    return {unknown: VersionedFieldSet(held, version, render_time(now))}


def _owners_after_update(before: JsonObject, after: JsonObject) -> Owners:
    sent = array_at(after, "metadata", "managedFields")
    # One empty entry resets ownership; without an entry the client leaves it unchanged.
    if sent == [{}]:
        return {}
    owners = parse_owners(sent)
    return owners or parse_owners(array_at(before, "metadata", "managedFields"))


def _remove_abandoned(
    merged: JsonObject, previous: FieldSet, owners: Owners, root: Schema
) -> JsonObject:
    """Remove fields of the previous apply that are not applied now and have no other owner."""
    kept = with_ancestors(path for owned in owners.values() for path in owned.fields)
    abandoned = with_ancestors(previous) - kept - _UNOWNED
    return _as_object(remove_paths(merged, abandoned, root))


def _conflicts(owners: Owners, me: Manager, written: FieldSet) -> Iterator[Conflict]:
    for other in sorted(owners, key=render_manager):
        if other != me:
            for path in sorted(owners[other].fields & written):
                yield Conflict(other, path)


def _less(owned: VersionedFieldSet, lost: FieldSet) -> VersionedFieldSet:
    return VersionedFieldSet(owned.fields - lost, owned.api_version, owned.time)


def _without_unowned(fields: FieldSet) -> FieldSet:
    return fields - _UNOWNED


def _without_managed_fields(existing: JsonObject) -> JsonObject:
    metadata = object_at(existing, "metadata")
    kept = {key: inner for key, inner in metadata.items() if key != "managedFields"}
    return {**existing, "metadata": kept}


def _with_owners(existing: JsonObject, owners: Owners) -> JsonObject:
    # Shallow, for speed: the nested values are never changed.
    written = dict(existing)
    entries = print_owners(owners)
    if entries:
        written["metadata"] = {**object_at(written, "metadata"), "managedFields": entries}
    return written


def _as_object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
