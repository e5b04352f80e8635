"""The suspension of projects: the condition of a Project, and the refusal of writes. Pure.

Milo refuses every create and update in the plane of a suspended project, status and Events
included; reads and deletes pass (suspension.md 1). A simulation that let a status through would
show operators that work nowhere else. The gateway before real API servers uses these functions too.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.authz.identity import MASTERS, User
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.conditions import Condition, derive_conditions, is_condition_true
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    objects_at,
    string_at,
)

SUSPENDED: Final = "Suspended"
CAUSE: Final = "ProjectSuspended"
LIFTED: Final = "Lifted"
ACCESS_REVIEWS: Final = frozenset(
    GroupResource("authorization.k8s.io", plural)
    for plural in ("subjectaccessreviews", "localsubjectaccessreviews")
)


def is_exempt(resource: GroupResource, user: User, existing: JsonObject | None) -> bool:
    """Whether a write passes although the project is suspended; `existing` is None for a create."""
    if resource in ACCESS_REVIEWS or MASTERS in user.groups:
        return True
    return existing is not None and bool(string_at(existing, "metadata", "deletionTimestamp"))


def refuse_write(project: JsonObject, resource: GroupResource, name: str) -> StatusError | None:
    """The refusal of a write that is not exempt; None if the project is not suspended."""
    if not is_condition_true(project, SUSPENDED):
        return None
    reasons = {string_at(one, "reason") for one in objects_at(project, "status", "suspensions")}
    why = (
        f'project "{string_at(project, "metadata", "name")}" is suspended '
        f"({', '.join(sorted(reasons)) or 'unspecified'}) and cannot accept new updates while "
        "suspended"
    )
    refusal = api_errors.forbidden(resource, name, why)
    # On the wire the type of a cause is its `reason`.
    refusal.add_cause({"reason": CAUSE, "message": why})
    return refusal


def derive_suspended_status(
    project: JsonObject, suspensions: Iterable[JsonObject], now: datetime
) -> JsonObject | None:
    """The part of a Project's status about its suspensions; None if there never was one."""
    name = string_at(project, "metadata", "name")
    ours = [one for one in suspensions if string_at(one, "spec", "projectRef", "name") == name]
    is_known = any(
        one.get("type") == SUSPENDED for one in objects_at(project, "status", "conditions")
    )
    if not ours and not is_known:
        return None  # the feature gate is off
    described = [_derive_entry(one) for one in ours]
    described.sort(key=lambda one: (string_at(one, "reason"), string_at(one, "suspendedAt")))
    entries: list[JsonValue] = [*described]
    active = sorted(
        string_at(one, "metadata", "name")
        for one in ours
        if string_at(one, "status", "phase") != LIFTED
    )
    condition = _derive_condition(active, integer_at(project, "metadata", "generation") or 1)
    return {
        "conditions": derive_conditions(project, condition, now),
        # None removes the list in a merge patch.
        "suspensions": entries or None,
    }


def _derive_condition(active: list[str], generation: int) -> Condition:
    if not active:
        return Condition(SUSPENDED, "False", "Active", "Project is active", generation)
    message = f"Project is suspended due to active suspensions: {', '.join(active)}"
    return Condition(SUSPENDED, "True", SUSPENDED, message, generation)


def _derive_entry(suspension: JsonObject) -> JsonObject:
    return {
        "reason": string_at(suspension, "spec", "reason"),
        "suspendedAt": string_at(suspension, "metadata", "creationTimestamp"),
        "reinstateAuthority": string_at(suspension, "spec", "reinstateAuthority"),
    }
