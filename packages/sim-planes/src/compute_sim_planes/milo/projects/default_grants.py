"""GrantCreationPolicies: grants that Milo creates for new Projects from templates of the root.

Each policy creates its grant once per Project, when the Project is provisioned or when the policy
is created later; a grant that is changed or deleted afterwards stays so. Triggers other than
Projects and constraints (CEL expressions) are not simulated: such a policy gets a condition and
creates nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.client.errors import AlreadyExistsError
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import Condition, derive_conditions
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    objects_at,
    string_at,
    value_at,
)
from compute_sim_planes.milo.kinds import (
    DEFAULT_NAMESPACE,
    GRANT_POLICIES,
    GRANTS,
    PROJECTS,
    RESOURCE_MANAGER_GROUP,
)
from compute_sim_planes.time.sources import Clock

_BRACES: Final = re.compile(r"\{\{\s*(?P<expression>[^{}]*?)\s*\}\}")
_PATH: Final = re.compile(r"trigger(?P<steps>(?:\.[A-Za-z_][A-Za-z0-9_]*)+)")


class PolicyError(Exception):
    """A policy that is not simulated or has an invalid expression."""


@dataclass(frozen=True, slots=True)
class GrantTarget:
    """A grant and its plane; `project` is empty for the root."""

    project: str
    grant: JsonObject


def derive_target(policy: JsonObject, trigger: JsonObject) -> GrantTarget:
    """The grant of a policy for one Project."""
    template = object_at(policy, "spec", "target", "resourceGrantTemplate")
    rendered = _render(template, trigger)
    metadata = dict(object_at(rendered, "metadata"))
    metadata.setdefault("namespace", DEFAULT_NAMESPACE)
    grant: JsonObject = {"metadata": metadata, "spec": object_at(rendered, "spec")}
    return GrantTarget(_derive_project(policy, trigger), grant)


def explain_unsupported(policy: JsonObject) -> str:
    """Why a policy is not simulated; empty if it is."""
    trigger = object_at(policy, "spec", "trigger")
    kind = (
        string_at(trigger, "resource", "apiVersion"),
        string_at(trigger, "resource", "kind"),
    )
    if kind != (PROJECTS.api_version, PROJECTS.kind):
        return f"triggers of kind {kind[1]} in {kind[0]} are not simulated"
    if objects_at(trigger, "constraints"):
        return "constraints of triggers are not simulated"
    try:
        derive_target(policy, {"metadata": {"name": "any"}})
    except PolicyError as error:
        return str(error)
    return ""


def is_active(policy: JsonObject) -> bool:
    return policy.get("spec") is not None and not (
        value_at(policy, "spec", "disabled") is True or explain_unsupported(policy)
    )


def _derive_project(policy: JsonObject, trigger: JsonObject) -> str:
    parent = object_at(policy, "spec", "target", "parentContext")
    if not parent:
        return ""
    if (string_at(parent, "apiGroup"), string_at(parent, "kind")) != (
        RESOURCE_MANAGER_GROUP,
        PROJECTS.kind,
    ):
        raise PolicyError("a parent that is no Project has no plane of its own")
    return _evaluate(string_at(parent, "nameExpression"), trigger)


def _render(template: JsonValue, trigger: JsonObject) -> JsonValue:
    if isinstance(template, dict):
        return {name: _render(value, trigger) for name, value in template.items()}
    if isinstance(template, list):
        return [_render(value, trigger) for value in template]
    if isinstance(template, str):
        return _BRACES.sub(lambda match: _evaluate(match["expression"], trigger), template)
    return template


def _evaluate(expression: str, trigger: JsonObject) -> str:
    """A path into the trigger, the only expression that our manifests use."""
    match = _PATH.fullmatch(expression.strip())
    if match is None:
        raise PolicyError(f"expression {expression!r} is more than a path and is not simulated")
    value = value_at(trigger, *match["steps"].split(".")[1:])
    if not isinstance(value, str):
        raise PolicyError(f"expression {expression!r} leads to no text in the trigger")
    return value


class DefaultGrants:
    """Creates the grants of policies. The project controller calls it for policies and Projects."""

    def __init__(self, root: Client, plane_of: Callable[[str], Client], clock: Clock) -> None:
        self._root = root
        self._plane_of = plane_of
        self._clock = clock
        self._made: set[tuple[str, str]] = set()

    async def ensure_for(self, project: JsonObject) -> None:
        """Create the grants of all policies for one Project; raises errors of its plane."""
        for policy in (await self._root.list(GRANT_POLICIES)).items:
            if is_active(policy):
                await self._ensure(policy, project)

    async def report(self, policy: JsonObject) -> None:
        """Set a policy's condition."""
        generation = integer_at(policy, "metadata", "generation") or 1
        why = explain_unsupported(policy)
        condition = (
            Condition("Ready", "False", "PolicyNotSimulated", why, generation)
            if why
            else Condition("Ready", "True", "PolicyReady", "Policy is ready", generation)
        )
        status: JsonObject = {
            "conditions": derive_conditions(policy, condition, self._clock.now()),
            "observedGeneration": generation,
        }
        if object_at(policy, "status") != status:
            name = string_at(policy, "metadata", "name")
            await self._root.patch(GRANT_POLICIES, name, {"status": status}, subresource="status")

    async def _ensure(self, policy: JsonObject, project: JsonObject) -> None:
        done = (string_at(policy, "metadata", "uid"), string_at(project, "metadata", "uid"))
        if done in self._made:
            return
        target = derive_target(policy, project)
        plane = self._plane_of(target.project) if target.project else self._root
        with suppress(AlreadyExistsError):
            await plane.create(GRANTS, _typed(target.grant))
        self._made.add(done)


def _typed(grant: JsonObject) -> JsonObject:
    return {"apiVersion": GRANTS.api_version, "kind": GRANTS.kind, **grant}
