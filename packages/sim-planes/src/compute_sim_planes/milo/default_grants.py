"""GrantCreationPolicies: grants that Milo makes for new Projects, by templates of the root.

Each policy makes its grant once per Project, at its provisioning or when the policy comes later;
whoever changes or deletes that grant afterwards is not overruled. Triggers other than Projects and
constraints (expressions of CEL) are not simulated: such a policy says so in its condition and makes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.client import Client
from compute_sim_planes.client_errors import AlreadyExistsError
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    objects_at,
    string_at,
    value_at,
)
from compute_sim_planes.milo.conditions import Finding, derive_conditions
from compute_sim_planes.milo.kinds import (
    DEFAULT_NAMESPACE,
    GRANT_POLICIES,
    GRANTS,
    PROJECTS,
    RESOURCE_MANAGER_GROUP,
)

_BRACES: Final = re.compile(r"\{\{\s*(?P<expression>[^{}]*?)\s*\}\}")
_PATH: Final = re.compile(r"trigger(?P<steps>(?:\.[A-Za-z_][A-Za-z0-9_]*)+)")


class PolicyError(Exception):
    """A policy that asks for what is not simulated, or for nothing that can be."""


@dataclass(frozen=True, slots=True)
class Target:
    """A grant and the plane it belongs into; `project` is empty for the root."""

    project: str
    grant: JsonObject


def derive_target(policy: JsonObject, trigger: JsonObject) -> Target:
    """The grant of a policy for one Project."""
    template = object_at(policy, "spec", "target", "resourceGrantTemplate")
    rendered = _render(template, trigger)
    metadata = dict(object_at(rendered, "metadata"))
    metadata.setdefault("namespace", DEFAULT_NAMESPACE)
    grant: JsonObject = {"metadata": metadata, "spec": object_at(rendered, "spec")}
    return Target(_derive_project(policy, trigger), grant)


def explain_unsupported(policy: JsonObject) -> str:
    """Why a policy makes no grants here; empty where it does."""
    trigger = object_at(policy, "spec", "trigger")
    wanted = (
        string_at(trigger, "resource", "apiVersion"),
        string_at(trigger, "resource", "kind"),
    )
    if wanted != (PROJECTS.api_version, PROJECTS.kind):
        return f"triggers of kind {wanted[1]} in {wanted[0]} are not simulated"
    if objects_at(trigger, "constraints"):
        return "constraints of triggers are not simulated"
    try:
        derive_target(policy, {"metadata": {"name": "any"}})
    except PolicyError as error:
        return str(error)
    return ""


def is_at_work(policy: JsonObject) -> bool:
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
        return _BRACES.sub(lambda found: _evaluate(found["expression"], trigger), template)
    return template


def _evaluate(expression: str, trigger: JsonObject) -> str:
    """A path into the trigger, the only expression our manifests use."""
    found = _PATH.fullmatch(expression.strip())
    if found is None:
        raise PolicyError(f"expression {expression!r} is more than a path and is not simulated")
    value = value_at(trigger, *found["steps"].split(".")[1:])
    if not isinstance(value, str):
        raise PolicyError(f"expression {expression!r} leads to no text in the trigger")
    return value


class DefaultGrants:
    """Carries policies out. Told of policies by the root's watch, of Projects by who makes them."""

    def __init__(self, root: Client, plane_of: Callable[[str], Client], clock: Clock) -> None:
        self._root = root
        self._plane_of = plane_of
        self._clock = clock
        self._made: set[tuple[str, str]] = set()

    async def ensure_for(self, project: JsonObject) -> None:
        """Makes the grants of all policies for one Project; raises what its plane raises."""
        for policy in (await self._root.list(GRANT_POLICIES)).items:
            if is_at_work(policy):
                await self._ensure(policy, project)

    async def report(self, policy: JsonObject) -> None:
        """Says in a policy's condition whether it is at work."""
        generation = integer_at(policy, "metadata", "generation") or 1
        why = explain_unsupported(policy)
        finding = (
            Finding("Ready", "False", "PolicyNotSimulated", why, generation)
            if why
            else Finding("Ready", "True", "PolicyReady", "Policy is ready", generation)
        )
        status: JsonObject = {
            "conditions": derive_conditions(policy, finding, self._clock.now()),
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
