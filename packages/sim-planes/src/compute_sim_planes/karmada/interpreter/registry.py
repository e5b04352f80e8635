"""The interpreters of the hub's customizations by kind, with defaults for kinds without scripts."""

from __future__ import annotations

from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.interpreter.customization import Interpreter
from compute_sim_planes.karmada.metadata import uid_of, version_of


class Interpreters:
    """Interpreters by kind; each customization keeps its virtual machine until it changes."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._made: dict[tuple[str, str], Interpreter] = {}

    def aggregator(self, existing: JsonObject) -> Interpreter | None:
        """The interpreter that aggregates the members' statuses, if any."""
        return next((one for one in self._of(existing) if one.aggregates), None)

    def reflect(self, copy: JsonObject) -> JsonValue:
        """The status of a member's copy: from a script, or the whole status."""
        for interpreter in self._of(copy):
            if interpreter.reflects:
                return interpreter.reflect(copy)
        return copy.get("status")

    def is_healthy(self, copy: JsonObject) -> bool:
        """Health of a copy by its script; without a script it is healthy."""
        for interpreter in self._of(copy):
            if interpreter.interprets_health:
                return interpreter.is_healthy(copy)
        return True

    def dependencies(self, existing: JsonObject) -> Interpreter | None:
        """The interpreter that states what an object depends on, if any."""
        return next((one for one in self._of(existing) if one.has_dependencies), None)

    def retain(self, desired: JsonObject, existing: JsonObject) -> JsonObject:
        """The desired copy with fields that a script retains from the member."""
        for interpreter in self._of(desired):
            if interpreter.retains:
                return interpreter.retain(desired, existing)
        return desired

    def _of(self, existing: JsonObject) -> list[Interpreter]:
        kind = (string_at(existing, "apiVersion"), string_at(existing, "kind"))
        return [
            self._make(customization)
            for customization in self._hub.customizations.items()
            if _target(customization) == kind
        ]

    def _make(self, customization: JsonObject) -> Interpreter:
        key = (uid_of(customization), version_of(customization))
        if key not in self._made:
            self._made[key] = Interpreter(customization, self._hub.clock.now)
        return self._made[key]


def _target(customization: JsonObject) -> tuple[str, str]:
    target = object_at(customization, "spec", "target")
    return string_at(target, "apiVersion"), string_at(target, "kind")
