"""JSON patch (RFC 6902: add, remove, replace, test) and merge patch (RFC 7386); pure."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from compute_quota_client._fake.refusals import failed_test


class _Step(BaseModel):
    op: Literal["add", "remove", "replace", "test"]
    path: str
    value: JsonValue = None


_STEPS = TypeAdapter(list[_Step])


def json_patch(target: JsonValue, body: bytes) -> JsonValue:
    """`target` with every step carried out, or a refusal and nothing carried out."""
    try:
        steps = _STEPS.validate_json(body)
    except ValidationError:
        raise failed_test() from None
    for step in steps:
        _apply(target, step)
    return target


def _apply(target: JsonValue, step: _Step) -> None:
    *parents, last = [
        part.replace("~1", "/").replace("~0", "~") for part in step.path.split("/")[1:]
    ]
    holder = target
    for part in parents:
        holder = _child(holder, part)
    if not isinstance(holder, dict):
        raise failed_test()
    if step.op != "add" and last not in holder:
        raise failed_test()
    if step.op == "test":
        if holder[last] != step.value:
            raise failed_test()
    elif step.op == "remove":
        del holder[last]
    else:
        holder[last] = step.value


def _child(holder: JsonValue, part: str) -> JsonValue:
    if isinstance(holder, dict) and part in holder:
        return holder[part]
    if isinstance(holder, list) and part.isdigit() and int(part) < len(holder):
        return holder[int(part)]
    raise failed_test()


def merge_patch(target: JsonValue, patch: JsonValue) -> JsonValue:
    """`target` with the members of `patch` put in, and those that are null taken out."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
