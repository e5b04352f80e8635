"""The file format of fault plans, `compute.faults/v1`: a failing run in one line.

Parsing is strict, because a plan with a typo would replay another run. Printing omits defaults for
readability; parsing the output gives the same plan.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import orjson

from compute_sim_planes.faults.plans import (
    DEFAULT_FAULTS,
    Action,
    Fault,
    FaultPlan,
    FaultPlanError,
    Parameters,
    Point,
    default_fault,
    default_parameters,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, strings_at

SCHEMA: Final = "compute.faults/v1"


def parse_plan(text: str | bytes) -> FaultPlan:
    """The plan in a file; the first problem raises FaultPlanError with the field's name."""
    try:
        document: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as failure:
        raise FaultPlanError(f"reading plan: {failure}") from failure
    plan = _known(document, "plan", {"schema", "scenario", "seed", "oracles", "faults"})
    if plan.get("schema") != SCHEMA:
        raise FaultPlanError(f"schema: {plan.get('schema')!r} is not {SCHEMA!r}")
    faults = plan.get("faults", [])
    if not isinstance(faults, list):
        raise FaultPlanError("faults: must be a list")
    return FaultPlan(
        scenario=_text(plan, "scenario", "plan"),
        seed=_number(plan, "seed", "plan", 0),
        faults=tuple(_parse_fault(fault, f"faults[{at}]") for at, fault in enumerate(faults)),
        oracles=tuple(strings_at(plan, "oracles")),
    )


def _parse_fault(document: JsonValue, where: str) -> Fault:
    section = _known(document, where, {"id", "at", "action", "with"})
    point = _parse_point(section.get("at", {}), f"{where}.at")
    fault_id = _text(section, "id", where)
    name = section.get("action")
    if name is None:
        usual = default_fault(fault_id, point)
        action, parameters = usual.action, usual.parameters
    elif isinstance(name, str) and name in set(Action):
        action, parameters = Action(name), default_parameters(fault_id, Action(name))
    else:
        raise FaultPlanError(f"{where}.action: {name!r} is not known")
    parameters = _parse_parameters(section.get("with", {}), f"{where}.with", parameters)
    return Fault(fault_id, action, point, parameters)


_POINT_FIELDS: Final = {
    "plane", "verb", "kind", "key", "subresource", "nth", "times", "every", "after", "until",
}  # fmt: skip


def _parse_point(document: JsonValue, where: str) -> Point:
    section = _known(document, where, _POINT_FIELDS)
    return Point(
        plane=_text(section, "plane", where),
        verb=_text(section, "verb", where),
        kind=_text(section, "kind", where),
        key=_text(section, "key", where),
        subresource=_text(section, "subresource", where) if "subresource" in section else None,
        nth=_number(section, "nth", where, 1),
        times=_number(section, "times", where, 1),
        every=_number(section, "every", where, 1),
        after=_seconds(section, "after", where) or timedelta(),
        until=_seconds(section, "until", where),
    )


def _parse_parameters(document: JsonValue, where: str, defaults: Parameters) -> Parameters:
    section = _known(document, where, {"status", "reason", "delay", "retryAfter", "count"})
    delay = _seconds(section, "delay", where)
    return Parameters(
        status=_number(section, "status", where, defaults.status),
        reason=_text(section, "reason", where) or defaults.reason,
        delay=defaults.delay if delay is None else delay,
        retry_after=_seconds(section, "retryAfter", where) or defaults.retry_after,
        count=_number(section, "count", where, defaults.count),
    )


def _known(document: JsonValue, where: str, names: set[str]) -> JsonObject:
    if not isinstance(document, dict):
        raise FaultPlanError(f"{where}: must be an object")
    for name in document.keys() - names:
        raise FaultPlanError(f"{where}.{name}: is not known")
    return document


def _text(document: JsonObject, name: str, where: str) -> str:
    value = document.get(name, "")
    if not isinstance(value, str):
        raise FaultPlanError(f"{where}.{name}: must be a string")
    return value


def _number(document: JsonObject, name: str, where: str, default: int) -> int:
    value = document.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FaultPlanError(f"{where}.{name}: must be a whole number")
    return value


def _seconds(document: JsonObject, name: str, where: str) -> timedelta | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise FaultPlanError(f"{where}.{name}: must be a number of seconds")
    return timedelta(seconds=value)


def print_plan(plan: FaultPlan) -> str:
    """The plan as one line without default values."""
    document: JsonObject = {
        "schema": SCHEMA,
        "scenario": plan.scenario,
        "seed": plan.seed,
        "oracles": list[JsonValue](plan.oracles),
        "faults": [_print_fault(fault) for fault in plan.faults],
    }
    return orjson.dumps(document).decode()


def _print_fault(fault: Fault) -> JsonObject:
    printed: JsonObject = {"id": fault.id, "at": _print_point(fault.at)}
    usual_action, _ = DEFAULT_FAULTS.get(fault.id, (None, None))
    if fault.action is not usual_action:
        printed["action"] = fault.action.value
    different = _print_parameters(fault.parameters, default_parameters(fault.id, fault.action))
    if different:
        printed["with"] = different
    return printed


def _print_point(point: Point) -> JsonObject:
    printed: JsonObject = {}
    for name in ("plane", "verb", "kind", "key"):
        value: str = getattr(point, name)
        if value:
            printed[name] = value
    if point.subresource is not None:
        printed["subresource"] = point.subresource
    printed["nth"] = point.nth
    if point.times != 1:
        printed["times"] = point.times
    if point.every != 1:
        printed["every"] = point.every
    if point.after:
        printed["after"] = point.after.total_seconds()
    if point.until is not None:
        printed["until"] = point.until.total_seconds()
    return printed


def _print_parameters(parameters: Parameters, defaults: Parameters) -> JsonObject:
    printed: JsonObject = {}
    if parameters.status != defaults.status:
        printed["status"] = parameters.status
    if parameters.reason != defaults.reason:
        printed["reason"] = parameters.reason
    if parameters.delay != defaults.delay:
        printed["delay"] = parameters.delay.total_seconds()
    if parameters.retry_after is not None and parameters.retry_after != defaults.retry_after:
        printed["retryAfter"] = parameters.retry_after.total_seconds()
    if parameters.count != defaults.count:
        printed["count"] = parameters.count
    return printed
