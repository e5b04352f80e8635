"""The file form of fault plans, `compute.faults/v1`: a failing run in one line.

Reading is strict: a plan with a typo would replay something else and find nothing. Printing leaves
out what is usual, so that people can read it; parsing what was printed gives the same plan.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import orjson

from compute_sim_planes.fault_plans import (
    USUAL,
    Action,
    Fault,
    FaultPlan,
    FaultPlanError,
    Parameters,
    Point,
    usual_fault,
    usual_parameters,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, strings_at

SCHEMA: Final = "compute.faults/v1"


def parse_plan(text: str | bytes) -> FaultPlan:
    """The plan in a file; the first thing wrong raises FaultPlanError with its field."""
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
    found = _known(document, where, {"id", "at", "action", "with"})
    point = _parse_point(found.get("at", {}), f"{where}.at")
    fault_id = _text(found, "id", where)
    said = found.get("action")
    if said is None:
        usual = usual_fault(fault_id, point)
        action, parameters = usual.action, usual.parameters
    elif isinstance(said, str) and said in set(Action):
        action, parameters = Action(said), usual_parameters(fault_id, Action(said))
    else:
        raise FaultPlanError(f"{where}.action: {said!r} is not known")
    parameters = _parse_parameters(found.get("with", {}), f"{where}.with", parameters)
    return Fault(fault_id, action, point, parameters)


_POINT_FIELDS: Final = {
    "plane", "verb", "kind", "key", "subresource", "nth", "times", "every", "after", "until",
}  # fmt: skip


def _parse_point(document: JsonValue, where: str) -> Point:
    found = _known(document, where, _POINT_FIELDS)
    return Point(
        plane=_text(found, "plane", where),
        verb=_text(found, "verb", where),
        kind=_text(found, "kind", where),
        key=_text(found, "key", where),
        subresource=_text(found, "subresource", where) if "subresource" in found else None,
        nth=_number(found, "nth", where, 1),
        times=_number(found, "times", where, 1),
        every=_number(found, "every", where, 1),
        after=_seconds(found, "after", where) or timedelta(),
        until=_seconds(found, "until", where),
    )


def _parse_parameters(document: JsonValue, where: str, usual: Parameters) -> Parameters:
    found = _known(document, where, {"status", "reason", "delay", "retryAfter", "count"})
    delay = _seconds(found, "delay", where)
    return Parameters(
        status=_number(found, "status", where, usual.status),
        reason=_text(found, "reason", where) or usual.reason,
        delay=usual.delay if delay is None else delay,
        retry_after=_seconds(found, "retryAfter", where) or usual.retry_after,
        count=_number(found, "count", where, usual.count),
    )


def _known(document: JsonValue, where: str, names: set[str]) -> JsonObject:
    if not isinstance(document, dict):
        raise FaultPlanError(f"{where}: must be an object")
    for name in document.keys() - names:
        raise FaultPlanError(f"{where}.{name}: is not known")
    return document


def _text(found: JsonObject, name: str, where: str) -> str:
    value = found.get(name, "")
    if not isinstance(value, str):
        raise FaultPlanError(f"{where}.{name}: must be a string")
    return value


def _number(found: JsonObject, name: str, where: str, usual: int) -> int:
    value = found.get(name, usual)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FaultPlanError(f"{where}.{name}: must be a whole number")
    return value


def _seconds(found: JsonObject, name: str, where: str) -> timedelta | None:
    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise FaultPlanError(f"{where}.{name}: must be a number of seconds")
    return timedelta(seconds=value)


def print_plan(plan: FaultPlan) -> str:
    """The plan as one line; what is usual is left out, so that people can read it."""
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
    usual_action, _ = USUAL.get(fault.id, (None, None))
    if fault.action is not usual_action:
        printed["action"] = fault.action.value
    different = _print_parameters(fault.parameters, usual_parameters(fault.id, fault.action))
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


def _print_parameters(parameters: Parameters, usual: Parameters) -> JsonObject:
    printed: JsonObject = {}
    if parameters.status != usual.status:
        printed["status"] = parameters.status
    if parameters.reason != usual.reason:
        printed["reason"] = parameters.reason
    if parameters.delay != usual.delay:
        printed["delay"] = parameters.delay.total_seconds()
    if parameters.retry_after is not None and parameters.retry_after != usual.retry_after:
        printed["retryAfter"] = parameters.retry_after.total_seconds()
    if parameters.count != usual.count:
        printed["count"] = parameters.count
    return printed
