"""A ResourceInterpreterCustomization at work: what its own scripts make of objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from compute_sim_planes.json_types import JsonObject, JsonValue, string_at
from compute_sim_planes.karmada.lua_sandbox import LuaSandbox, ScriptError


@dataclass(frozen=True, slots=True)
class StatusItem:
    """What one Work says of its cluster; a Work that is not applied has neither flag nor status."""

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
        self._retention = string_at(customization, *rules, "retention", "luaScript")

    @property
    def aggregates(self) -> bool:
        """Without a script for it Karmada never writes hub status."""
        return bool(self._aggregation)

    @property
    def judges_health(self) -> bool:
        return bool(self._health)

    @property
    def reflects(self) -> bool:
        return bool(self._reflection)

    @property
    def retains(self) -> bool:
        return bool(self._retention)

    def aggregate(self, hub_object: JsonObject, items: Sequence[StatusItem] | None) -> JsonObject:
        """The hub object with the status that the cells' statuses amount to."""
        ordered = sorted(items, key=lambda item: item.cluster) if items is not None else None
        told: JsonValue = [item.as_json() for item in ordered] if ordered is not None else None
        result = self._sandbox.call(self._aggregation, "AggregateStatus", hub_object, told)
        if not isinstance(result, dict):
            raise ScriptError("AggregateStatus returned no object")
        return result

    def is_healthy(self, member_object: JsonObject) -> bool:
        result = self._sandbox.call(self._health, "InterpretHealth", member_object)
        if not isinstance(result, bool):
            raise ScriptError("InterpretHealth returned no boolean")
        return result

    def reflect(self, member_object: JsonObject) -> JsonObject:
        """The status a copy shows the hub; a script that has none to show fails."""
        result = self._sandbox.call(self._reflection, "ReflectStatus", member_object)
        if not isinstance(result, dict):
            raise ScriptError("ReflectStatus returned no table")
        return result

    def retain(self, wanted: JsonObject, found: JsonObject) -> JsonObject:
        """The object to write, with what the script takes over from the one that is there."""
        result = self._sandbox.call(self._retention, "Retain", wanted, found)
        if not isinstance(result, dict):
            raise ScriptError("Retain returned no object")
        return result
