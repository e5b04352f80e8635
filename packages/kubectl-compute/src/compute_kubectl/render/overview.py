"""`why --all` as text: one line for each Workload that is not Ready."""

from __future__ import annotations

from collections.abc import Sequence

from compute_kubectl.explain.diagnosis import Diagnosis, Verdict
from compute_kubectl.render import words
from compute_kubectl.render.layout import format_age, table, wrap
from compute_kubectl.snapshot.planes import Snapshot


def render_overview(snapshot: Snapshot, diagnoses: Sequence[Diagnosis], width: int) -> list[str]:
    """A headline and a line for each Workload, as sorted."""
    waiting = [one for one in diagnoses if one.verdict is not Verdict.READY]
    total = len(diagnoses)
    noun = "Workload" if total == 1 else "Workloads"
    cut = " (the list was cut)" if snapshot.project.workloads.is_partial else ""
    lines = wrap(
        f"Namespace {snapshot.namespace}: {total - len(waiting)} of {total} {noun} ready{cut}",
        width,
    )
    if diagnoses:
        for one in words.unread_lines(diagnoses[0]):
            lines += wrap(one, width, "  ")
    if not waiting:
        return lines
    rows = [["name", "cities", "stage", "for", "turn", "reason"]]
    rows += [_row(one) for one in waiting]
    return [*lines, "", *table(rows, width)]


def _row(one: Diagnosis) -> list[str]:
    ready = sum(city.verdict is Verdict.READY for city in one.cities)
    cities = f"{ready}/{len(one.cities)}"
    if one.finding is None:
        return [one.name, cities, "", "", one.verdict.value, ""]
    return [
        one.name,
        cities,
        f"{one.finding.stage.value} {one.finding.stage.label}",
        format_age(one.age) if one.age is not None else "unknown",
        words.turn_of(one.finding, one.actionability),
        one.finding.reason or one.finding.text,
    ]
