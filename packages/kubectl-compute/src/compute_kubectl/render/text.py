"""`why` as text: one screen for one Workload, one line for a city that is ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from compute_kubectl.explain.causes import Actionability, explanation_of
from compute_kubectl.explain.diagnosis import (
    CityDiagnosis,
    Contradiction,
    Diagnosis,
    Evidence,
    Finding,
    Verdict,
)
from compute_kubectl.render import words
from compute_kubectl.render.layout import (
    clean,
    format_age,
    format_moment,
    join_fitting,
    quote_word,
    width_of,
    wrap,
)

_MOST_SEEN = 4


@dataclass(frozen=True, slots=True)
class Fold:
    """Cities that stand at the same place for the same reason."""

    cities: tuple[CityDiagnosis, ...]

    @property
    def first(self) -> CityDiagnosis:
        return self.cities[0]


def render_why(diagnosis: Diagnosis, width: int) -> list[str]:
    """The lines of an answer, each at most `width` columns."""
    if diagnosis.verdict is Verdict.NOT_FOUND:
        return _not_found(diagnosis, width)
    name = f"Workload {diagnosis.namespace}/{diagnosis.name}"
    lines = join_fitting(
        (name, words.headline(diagnosis), words.asked_planes(diagnosis)), width, "  "
    )
    lines += [line for one in words.unread_lines(diagnosis) for line in wrap(one, width, "  ")]
    lines.append("")
    folds = fold_cities(diagnosis.cities)
    column = max((width_of(_label(diagnosis, fold)) for fold in folds), default=0)
    column = min(column, max(width // 4, 6))
    for fold in folds:
        lines += _city_lines(diagnosis, fold, column, width)
    if not diagnosis.cities and diagnosis.finding is None:
        lines += wrap("Nothing can be judged: the Workload could not be read.", width)
    if diagnosis.finding is not None and diagnosis.finding not in _shown(folds):
        lines += _finding_lines(diagnosis, diagnosis.finding, diagnosis.actionability, width)
    lines.append("")
    lines += _contradiction_lines(diagnosis, width)
    return lines


def _shown(folds: Sequence[Fold]) -> list[Finding]:
    return [fold.first.finding for fold in folds if fold.first.finding is not None]


def _not_found(diagnosis: Diagnosis, width: int) -> list[str]:
    text = f'workload "{diagnosis.name}" not found in namespace "{diagnosis.namespace}"'
    lines = wrap(text, width)
    if diagnosis.similar:
        offered = ", ".join(quote_word(one) for one in diagnosis.similar)
        lines += wrap(f"similar: {offered}", width)
    if diagnosis.cities or diagnosis.contradictions:
        lines += ["", *_contradiction_lines(diagnosis, width)]
    return lines


def fold_cities(cities: Sequence[CityDiagnosis]) -> list[Fold]:
    """Cities by what they have in common, ready ones first as one line."""
    groups: dict[tuple[object, ...], list[CityDiagnosis]] = {}
    for city in cities:
        finding = city.finding
        key: tuple[object, ...] = (city.verdict,)
        if finding is not None:
            key += (finding.stage, finding.reason, finding.message, city.actionability)
            key += (finding.owner, () if finding.reason else finding.text)
        groups.setdefault(key, []).append(city)
    folds = [Fold(tuple(members)) for members in groups.values()]
    return sorted(folds, key=lambda fold: fold.first.verdict is not Verdict.READY)


def _label(diagnosis: Diagnosis, fold: Fold) -> str:
    counts = Counter((one.placement, one.city) for one in diagnosis.cities)
    labels = [
        words.city_label(one, is_shared=counts[one.placement, one.city] > 1) for one in fold.cities
    ]
    return clean(", ".join(dict.fromkeys(labels)))


def _city_lines(diagnosis: Diagnosis, fold: Fold, column: int, width: int) -> Iterator[str]:
    city, finding = fold.first, fold.first.finding
    ready = sum(one.ready for one in fold.cities)
    desired = sum(one.desired for one in fold.cities)
    label = _label(diagnosis, fold)
    padded = label + " " * max(column - width_of(label), 0)
    verdict = f"{city.verdict.value:<11}"
    parts = [f"{padded}  {verdict}  {ready}/{desired}"]
    if finding is not None:
        parts += [
            words.stage_of(finding),
            _since(diagnosis, city),
            words.turn_of(finding, city.actionability),
        ]
    indent = " " * min(column + 2, 6)
    yield from _fitting_parts(parts, width, indent)
    if finding is not None:
        for line in _finding_lines(diagnosis, finding, city.actionability, width - len(indent)):
            yield indent + line
    for note in city.notes:
        yield from wrap(f"note: {note}", width, indent)
    if city.hidden and finding is not None:
        yield from wrap(f"not visible from here: {'; '.join(city.hidden)}", width, indent)


def _fitting_parts(parts: list[str], width: int, indent: str) -> Iterator[str]:
    first, *rest = parts
    whole = "   ".join([first, *rest])
    if width_of(whole) <= width:
        yield whole.rstrip()
        return
    yield from wrap(first, width) if width_of(first) > width else [first.rstrip()]
    for line in join_fitting(rest, width - len(indent), ""):
        yield indent + line


def _since(diagnosis: Diagnosis, city: CityDiagnosis) -> str:
    finding = city.finding
    if finding is None or finding.since is None or city.age is None:
        return "since unknown"
    moment = format_moment(finding.since, diagnosis.at)
    return f"since {moment} ({format_age(city.age)})"


def _finding_lines(
    diagnosis: Diagnosis, finding: Finding, actionability: Actionability | None, width: int
) -> list[str]:
    named = f" ({finding.reason})" if finding.reason not in finding.text else ""
    lines = wrap(f"{finding.text}{named}", width)
    if finding.message and clean(finding.message) not in clean(finding.text):
        lines += wrap(finding.message, width)
    elif not finding.message:
        lines += wrap(explanation_of(finding.reason), width)
    for detail in finding.details:
        lines += wrap(detail, width)
    lines += wrap(f"→ {words.remedy_of(diagnosis, finding, actionability)}", width)
    if finding.evidence:
        shown = "; ".join(evidence_text(one) for one in finding.evidence[:_MOST_SEEN])
        lines += wrap(f"seen: {shown}", width)
    return lines


def evidence_text(evidence: Evidence) -> str:
    """`ord-1 Instance web-main-ord-1 QuotaGranted=False QuotaExceeded`."""
    one = evidence.object
    return f"{one.plane} {one.kind} {one.name} {evidence.field}={evidence.value}"


def _contradiction_lines(diagnosis: Diagnosis, width: int) -> list[str]:
    if not diagnosis.contradictions:
        return ["Contradictions: none"]
    lines = [f"Contradictions: {len(diagnosis.contradictions)}"]
    for one in diagnosis.contradictions:
        lines += wrap(f"- {one.text}", width)
        lines += wrap(_both(diagnosis, one), width, "  ")
    return lines


def _both(diagnosis: Diagnosis, one: Contradiction) -> str:
    def side(evidence: Evidence, at: datetime | None) -> str:
        since = f" since {format_moment(at, diagnosis.at)}" if at else ""
        return f"{evidence_text(evidence)}{since}"

    return f"{side(one.first, one.first_at)}; {side(one.second, one.second_at)}"
