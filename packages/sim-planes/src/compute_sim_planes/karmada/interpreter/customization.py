"""The scripts of one ResourceInterpreterCustomization, called on objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from compute_sim_planes.json_types import JsonObject, JsonValue, string_at
from compute_sim_planes.karmada.interpreter.lua_sandbox import LuaSandbox, ScriptError


@dataclass(frozen=True, slots=True)
class StatusItem:
    """The status of one Work; without `applied` and `status` until the Work is applied."""

    cluster: str
    is_applied: bool
    status: JsonObject | None
    message: str = ""
    health: str = "Unknown"

    def as_json(self) -> JsonObject:
        item: JsonObject = {"clusterName": self.cluster, "health": self.health}
        if self.message:
            item["appliedMessage"] = self.message
        if not self.is_applied:
            return item
        item["applied"] = True
        if self.status is not None:
            item["status"] = self.status
        return item


class Interpreter:
    """The scripts of one customization, run in one sandbox."""

    def __init__(self, customization: JsonObject, now: Callable[[], datetime]) -> None:
        self._sandbox = LuaSandbox(now)
        rules = ("spec", "customizations")
        self._aggregation = string_at(customization, *rules, "statusAggregation", "luaScript")
        self._health = string_at(customization, *rules, "healthInterpretation", "luaScript")
        self._reflection = string_at(customization, *rules, "statusReflection", "luaScript")
        self._dependencies = string_at(
            customization, *rules, "dependencyInterpretation", "luaScript"
        )
        self._retention = string_at(customization, *rules, "retention", "luaScript")

    @property
    def aggregates(self) -> bool:
        """Without this script Karmada never writes hub status."""
        return bool(self._aggregation)

    @property
    def interprets_health(self) -> bool:
        return bool(self._health)

    @property
    def reflects(self) -> bool:
        return bool(self._reflection)

    @property
    def has_dependencies(self) -> bool:
        return bool(self._dependencies)

    @property
    def retains(self) -> bool:
        return bool(self._retention)

    def aggregate(self, hub_object: JsonObject, items: Sequence[StatusItem] | None) -> JsonObject:
        """The hub object with the aggregated status of the members."""
        ordered = sorted(items, key=lambda item: item.cluster) if items is not None else None
        entries: JsonValue = [item.as_json() for item in ordered] if ordered is not None else None
        result = self._sandbox.call(self._aggregation, "AggregateStatus", hub_object, entries)
        if not isinstance(result, dict):
            raise ScriptError("AggregateStatus returned no object")
        return result

    def is_healthy(self, member_object: JsonObject) -> bool:
        result = self._sandbox.call(self._health, "InterpretHealth", member_object)
        if not isinstance(result, bool):
            raise ScriptError("InterpretHealth returned no boolean")
        return result

    def reflect(self, member_object: JsonObject) -> JsonObject:
        """The status that a member's copy reports; a script that returns no table fails."""
        result = self._sandbox.call(self._reflection, "ReflectStatus", member_object)
        if not isinstance(result, dict):
            raise ScriptError("ReflectStatus returned no table")
        return result

    def dependencies(self, hub_object: JsonObject) -> list[JsonObject]:
        """References to the objects that the hub object depends on."""
        result = self._sandbox.call(self._dependencies, "GetDependencies", hub_object)
        if not isinstance(result, list) or not all(isinstance(one, dict) for one in result):
            raise ScriptError("GetDependencies returned no list of references")
        return [one for one in result if isinstance(one, dict)]

    def retain(self, desired: JsonObject, existing: JsonObject) -> JsonObject:
        """The object to write, with fields that the script retains from the existing one."""
        result = self._sandbox.call_about(self._retention, "Retain", desired, existing)
        if not isinstance(result, dict):
            raise ScriptError("Retain returned no object")
        return result
