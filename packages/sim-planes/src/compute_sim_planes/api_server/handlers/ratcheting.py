"""Validation ratcheting: problems in fields that an update does not change are tolerated.

A real server lets an object that became invalid (its schema was tightened, or it was written
without admission) be edited while the invalid field stays unchanged. Otherwise a finalizer could
not be removed from such an object.
"""

from __future__ import annotations

import re
from typing import Final

from compute_sim_planes.api_server.patch.json_patch import is_equal_json
from compute_sim_planes.api_server.schema.field_problems import FieldProblem, ProblemKind
from compute_sim_planes.json_types import JsonObject, JsonValue

_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


class _Absent:
    """A missing field, as distinct from null."""


_ABSENT: Final = _Absent()


def tolerate_unchanged(
    problems: list[FieldProblem], before: JsonObject, desired: JsonObject
) -> list[FieldProblem]:
    """The problems in fields that this update changed."""
    return [problem for problem in problems if not _is_untouched(problem, before, desired)]


def has_duplicates(problems: list[FieldProblem]) -> bool:
    """Whether a list that is a set or a map has an element twice."""
    return any(problem.kind is ProblemKind.DUPLICATE for problem in problems)


def tolerate_duplicates(problems: list[FieldProblem]) -> list[FieldProblem]:
    """The problems without duplicates, for an object that was stored with some: until it has none,
    a server looks for none, wherever they are.
    """
    return [problem for problem in problems if problem.kind is not ProblemKind.DUPLICATE]


def _is_untouched(problem: FieldProblem, before: JsonObject, desired: JsonObject) -> bool:
    steps = [value[1] or value[2] for value in _STEP.finditer(problem.path)]
    if problem.kind is ProblemKind.REQUIRED:
        # A missing field has no value: the object around it must be unchanged.
        steps = steps[:-1]
    then, now = _look_up(before, steps), _look_up(desired, steps)
    if isinstance(then, _Absent) or isinstance(now, _Absent):
        return False
    return is_equal_json(then, now)


def _look_up(document: JsonValue, steps: list[str]) -> JsonValue | _Absent:
    for step in steps:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return _ABSENT
    return document
