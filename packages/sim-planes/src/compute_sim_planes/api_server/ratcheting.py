"""Which problems of an update are old ones that nobody touched.

A real server lets an object that became invalid (its schema was tightened, or it came in past
admission) be edited as long as the bad part stays as it is. Without this, a finalizer could not be
removed from such an object.
"""

from __future__ import annotations

import re
from typing import Final

from compute_sim_planes.api_server.field_problems import FieldProblem, ProblemKind
from compute_sim_planes.api_server.patches import is_equal_json
from compute_sim_planes.json_types import JsonObject, JsonValue

_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


class _Absent:
    """Told apart from null."""


_ABSENT: Final = _Absent()


def tolerate_unchanged(
    problems: list[FieldProblem], before: JsonObject, wanted: JsonObject
) -> list[FieldProblem]:
    """The problems that this update brought about or touched."""
    return [problem for problem in problems if not _is_untouched(problem, before, wanted)]


def _is_untouched(problem: FieldProblem, before: JsonObject, wanted: JsonObject) -> bool:
    steps = [found[1] or found[2] for found in _STEP.finditer(problem.path)]
    if problem.kind is ProblemKind.REQUIRED:
        # What is missing has no value; the object that lacks it must be the same.
        steps = steps[:-1]
    then, now = _look_up(before, steps), _look_up(wanted, steps)
    if isinstance(then, _Absent) or isinstance(now, _Absent):
        return False
    return is_equal_json(then, now)


def _look_up(found: JsonValue, steps: list[str]) -> JsonValue | _Absent:
    for step in steps:
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return _ABSENT
    return found
