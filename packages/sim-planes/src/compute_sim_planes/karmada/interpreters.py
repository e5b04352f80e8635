"""The interpreters on the hub: which scripts speak for a kind, and what holds where none does."""

from __future__ import annotations

from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.interpreter import Interpreter
from compute_sim_planes.karmada.metadata import uid_of, version_of


class Interpreters:
    """By the kind they are for; each customization keeps its virtual machine until it changes."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._made: dict[tuple[str, str], Interpreter] = {}

    def aggregator(self, found: JsonObject) -> Interpreter | None:
        """Whose script says what members' statuses amount to."""
        return next((one for one in self._of(found) if one.aggregates), None)

    def reflect(self, copy: JsonObject) -> JsonValue:
        """What a member's copy says of itself: by a script, or its whole status."""
        for interpreter in self._of(copy):
            if interpreter.reflects:
                return interpreter.reflect(copy)
        return copy.get("status")

    def is_healthy(self, copy: JsonObject) -> bool:
        """Kinds that nobody judges are healthy."""
        for interpreter in self._of(copy):
            if interpreter.judges_health:
                return interpreter.is_healthy(copy)
        return True

    def retain(self, wanted: JsonObject, found: JsonObject) -> JsonObject:
        """The wanted copy with what a script leaves to the member."""
        for interpreter in self._of(wanted):
            if interpreter.retains:
                return interpreter.retain(wanted, found)
        return wanted

    def _of(self, found: JsonObject) -> list[Interpreter]:
        kind = (string_at(found, "apiVersion"), string_at(found, "kind"))
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
