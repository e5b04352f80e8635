"""Karmada's Lua sandbox: runs an interpreter script as the hub does, on Lua 5.1.

A script that works here must work on a real hub, so the same restrictions apply (removed functions,
no empty tables in results, field names that the converter cannot handle), and so do the hazards:
one virtual machine serves every call, and its globals persist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, Protocol, TypeAlias, runtime_checkable

from lupa import lua51

from compute_sim_planes.json_copies import copy_json
from compute_sim_planes.json_types import JsonObject, JsonValue

# `pkg/resourceinterpreter/customized/declarative/luavm` of Karmada v1.18: these base functions
# raise, strings lack the two that can grow without bound, and `os` has only the time.
FORBIDDEN: Final = (
    *("collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring"),
    *("module", "newproxy", "rawequal", "rawget", "rawset", "setfenv", "setmetatable"),
)
FORBIDDEN_OF_STRING: Final = ("gsub", "rep")
ABSENT: Final = ("io", "debug", "package", "coroutine", "python")
# Karmada edits the JSON of a result by path, where these characters have a meaning.
NOT_IN_FIELD_NAMES: Final = frozenset("|#@*?")

Path: TypeAlias = tuple[str, ...]


class ScriptError(Exception):
    """A script that failed, or returned an unsupported value; a hub logs it and retries."""


@runtime_checkable
class LuaTable(Protocol):
    """A table of the virtual machine, as far as conversion needs it."""

    def items(self) -> Iterable[tuple[object, object]]: ...


class LuaSandbox:
    """One pooled virtual machine; `now` is the time of `os.date` and `os.time`."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._machine = lua51.LuaRuntime(unpack_returned_tuples=True)
        self._machine.execute(_taken_away())
        clock = self._machine.table()
        clock["date"], clock["time"] = self._date, self._time
        self._machine.globals()["os"] = clock

    def call(self, script: str, function: str, *arguments: JsonValue) -> JsonValue:
        """The result of `function` in the script, converted as Karmada converts it."""
        return _without_empty(self._run(script, function, *arguments))

    def _run(self, script: str, function: str, *arguments: JsonValue) -> JsonValue:
        try:
            self._machine.execute(script)
            given = [self._into_lua(argument) for argument in arguments]
            returned = self._machine.globals()[function](*given)
        except (lua51.LuaError, TypeError) as failure:
            raise ScriptError(f"running {function}: {failure}") from failure
        return _from_lua(returned)

    def call_about(self, script: str, function: str, *arguments: JsonObject) -> JsonValue:
        """As `call`; a map or list of the result that is empty in an argument too stays. Karmada
        converts the result of a retention by its arguments.
        """
        result, empty = self._run(script, function, *arguments), dict[Path, JsonValue]()
        for argument in arguments:
            for path, value in _find_empty(argument):
                empty.setdefault(path, value)
        return _restore_empty(result, empty)

    def _date(self, layout: str = "%c") -> str:
        return self._now().strftime(layout.removeprefix("!"))

    def _time(self) -> int:
        return int(self._now().timestamp())

    def _into_lua(self, value: JsonValue) -> object:
        if not isinstance(value, dict | list):
            return value
        entries = value.items() if isinstance(value, dict) else enumerate(value, start=1)
        table = self._machine.table()
        for key, entry in entries:
            if entry is not None:
                table[key] = self._into_lua(entry)
        return table


def _taken_away() -> str:
    refusals = [
        f"function {name}() error('call function {name} is not supported') end"
        for name in FORBIDDEN
    ]
    refusals += [f"string.{name} = nil" for name in FORBIDDEN_OF_STRING]
    refusals += [f"{name} = nil" for name in ABSENT]
    return "\n".join(refusals)


def _from_lua(value: object) -> JsonValue:
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return int(value) if value.is_integer() else value
        case LuaTable() if lua51.lua_type(value) == "table":
            return _from_table(value)
        case _:
            raise ScriptError(f"a result holds a {lua51.lua_type(value)}, which JSON has not")


def _from_table(table: LuaTable) -> JsonValue:
    entries = list(table.items())
    if all(isinstance(key, int) for key, _ in entries):
        return [_from_lua(value) for _, value in entries]
    fields: JsonObject = {}
    for key, value in entries:
        if not isinstance(key, str):
            raise ScriptError("a table of the result mixes names and numbers")
        if NOT_IN_FIELD_NAMES & set(key):
            raise ScriptError(f"field name {key!r} cannot be converted")
        fields[key] = _from_lua(value)
    return fields


def _without_empty(value: JsonValue) -> JsonValue:
    """In Lua empty maps and lists are the same, so Karmada drops both from a script's result."""
    if isinstance(value, list):
        return [_without_empty(element) for element in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without_empty(entry) for name, entry in value.items()}
    return {name: entry for name, entry in kept.items() if entry not in ({}, [])}


def _find_empty(value: JsonValue, path: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    """Empty maps and lists below a value; positions in lists are no part of their paths."""
    if isinstance(value, list):
        entries = [(path, element) for element in value]
    elif isinstance(value, dict):
        entries = [((*path, name), entry) for name, entry in value.items()]
    else:
        return
    for below, entry in entries:
        if entry in ({}, []):
            yield below, entry
        else:
            yield from _find_empty(entry, below)


def _restore_empty(value: JsonValue, empty: Mapping[Path, JsonValue], path: Path = ()) -> JsonValue:
    if isinstance(value, list):
        return [_restore_empty(element, empty, path) for element in value]
    if not isinstance(value, dict):
        return value
    restored: JsonObject = {}
    for name, entry in value.items():
        below = (*path, name)
        if entry not in ({}, []):
            restored[name] = _restore_empty(entry, empty, below)
        elif below in empty:
            restored[name] = copy_json(empty[below])
    return restored
