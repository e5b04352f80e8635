"""The sentences of an answer that text output, JSON and the page share."""

from __future__ import annotations

from compute_api_types import reasons
from compute_kubectl.explain.causes import (
    ABOUT_DATA,
    Actionability,
    explanation_of,
    remediation_of,
)
from compute_kubectl.explain.diagnosis import CityDiagnosis, Diagnosis, Finding, Verdict
from compute_kubectl.explain.explain import within_of
from compute_kubectl.explain.stages import STAGES, Stage
from compute_kubectl.render.layout import format_age, quote_word
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.planes import Role

_OF_QUOTA = frozenset({reasons.QUOTA_EXCEEDED, reasons.PENDING_QUOTA, reasons.QUOTA_NOT_GRANTED})


def turn_of(finding: Finding, actionability: Actionability | None) -> str:
    """Which side acts next, in a few words."""
    match actionability:
        case Actionability.USER:
            return "your turn"
        case Actionability.PLATFORM:
            return "platform's turn"
        case Actionability.STALLED:
            return f"stalled, {format_age(within_of(finding))} is usual"
        case Actionability.TRANSIENT:
            return f"wait, up to {format_age(within_of(finding))} is usual"
        case None:
            return ""


def remedy_of(diagnosis: Diagnosis, finding: Finding, actionability: Actionability | None) -> str:
    """What to do next."""
    act = remediation_of(finding.reason)
    if finding.reason in _OF_QUOTA:
        return f"{act} See: kubectl compute quota -n {quote_word(diagnosis.namespace)}"
    if actionability is Actionability.STALLED:
        facts = STAGES[finding.stage]
        known = finding.reason in ABOUT_DATA
        what = f"{finding.reason} lasts longer than usual" if known else "No cause is reported"
        return f"{what}. It is up to {finding.owner}; look at {facts.metric}"
    if act:
        return act
    if actionability is Actionability.PLATFORM:
        return remediation_of(reasons.CITY_CODE_MISMATCH)
    return remediation_of(reasons.PENDING)


def explain_reason(finding: Finding) -> str:
    return explanation_of(finding.reason)


def stage_of(finding: Finding) -> str:
    return f"stage {finding.stage.value} of {len(Stage)}: {finding.stage.label}"


def asked_planes(diagnosis: Diagnosis) -> str:
    """`asked: project, hub, cells dfw-1, ord-1; not asked: …`."""
    asked = [one for one in diagnosis.planes if one.access is not Access.NOT_ASKED]
    cells = [one.name for one in asked if one.role is Role.CELL]
    named = [one.name for one in asked if one.role is not Role.CELL]
    if cells:
        named.append(f"cell{'s' if len(cells) > 1 else ''} {_shortened(cells)}")
    missing = [one.name for one in diagnosis.planes if one.access is Access.NOT_ASKED]
    text = f"asked: {', '.join(named) or 'nothing'}"
    return f"{text}; not asked: {_shortened(missing)}" if missing else text


def _shortened(names: list[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def unread_lines(diagnosis: Diagnosis) -> list[str]:
    """One line for each plane with what could not be read of it, and why."""
    by_plane: dict[tuple[str, Access], list[str]] = {}
    details: dict[tuple[str, Access], str] = {}
    for one in diagnosis.unread:
        by_plane.setdefault((one.plane, one.access), []).append(one.kind)
        details.setdefault((one.plane, one.access), one.detail)
    lines: list[str] = []
    for (plane, access), kinds in by_plane.items():
        named = ", ".join(kind for kind in kinds if kind)
        detail = details[plane, access]
        lines.append(
            f"{plane}: {access.value}{f': {named}' if named else ''}"
            f"{f' ({detail})' if detail else ''}"
        )
    lines += [
        f"{one.name}: its clock differs by {format_age(abs(one.skew))}"
        for one in diagnosis.planes
        if one.is_skewed and one.skew is not None
    ]
    return lines


def headline(diagnosis: Diagnosis) -> str:
    """`1 of 2 cities ready`."""
    ready = sum(one.verdict is Verdict.READY for one in diagnosis.cities)
    if diagnosis.verdict is Verdict.DELETING:
        return "being deleted"
    if not diagnosis.cities:
        return "no city is visible"
    return f"{ready} of {len(diagnosis.cities)} cities ready"


def city_label(city: CityDiagnosis, *, is_shared: bool) -> str:
    return f"{city.city} ({city.cell or 'no cell'})" if is_shared else city.city
