"""The listener of Projects that resume: their planes get the writes that they refused, at once.

A suspended project refuses every create and update, and its keys are parked (suspension.md 2).
Without this listener they would wait for the probe of the next minute.
"""

from __future__ import annotations

from typing_extensions import override

from compute_management_operator.discovery.observe import read_suspension
from compute_management_operator.planes import PROJECT
from compute_operator_kit.cache.lister import Change
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.planes.registry import ChangeHandler, PlaneListener


class ResumeListener(PlaneListener):
    """Calls the plane registry when a Project's condition `Suspended` ends."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    @override
    def change_handler(self, role: Role, kind: Kind) -> ChangeHandler | None:
        return self._on_change if role is Role.ROOT and kind == PROJECT else None

    def _on_change(self, change: Change) -> None:
        if change.after is None:
            return  # deleted, or missing from a list: no evidence of a resume
        was, now = read_suspension(change.before), read_suspension(change.after)
        if was == "True" and now in {"False", ""}:
            self._context.planes.expect_resume(PlaneName(change.key.name))
