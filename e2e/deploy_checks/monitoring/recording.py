"""The samples that one Prometheus would have stored during a run, a row per series.

Every scrape is one position in every row. A series that a scrape lacks is marked stale once, as
Prometheus does, and is absent afterwards. Rows are printed in promtool's notation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

ABSENT: Final = "_"
STALE: Final = "stale"


class Series(NamedTuple):
    """A metric with its labels, including those of the target."""

    metric: str
    labels: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        inside = ",".join(f'{name}="{_escape(value)}"' for name, value in self.labels)
        return f"{self.metric}{{{inside}}}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@dataclass(slots=True)
class ScrapeRecording:
    """The samples of one Prometheus in one cluster."""

    scrapes: int = 0
    _rows: dict[Series, dict[int, float]] = field(default_factory=dict[Series, dict[int, float]])

    def add(self, samples: Mapping[Series, float]) -> None:
        """Adds one scrape of all targets; a target that did not answer has no samples in it."""
        for series, value in samples.items():
            self._rows.setdefault(series, {})[self.scrapes] = value
        self.scrapes += 1

    def series(self) -> Iterable[Series]:
        return self._rows.keys()

    def print_rows(self, is_read: Callable[[str], bool]) -> list[dict[str, str]]:
        """The rows of metrics for which `is_read` is true, in promtool's notation."""
        return [
            {"series": series.text, "values": " ".join(_shorten(self._tokens(row)))}
            for series, row in sorted(self._rows.items())
            if is_read(series.metric)
        ]

    def _tokens(self, row: Mapping[int, float]) -> Iterator[str]:
        was_there = False
        for place in range(self.scrapes):
            value = row.get(place)
            if value is not None:
                yield f"{value:.10g}"
            else:
                yield STALE if was_there else ABSENT
            was_there = value is not None


def _shorten(tokens: Iterable[str]) -> Iterator[str]:
    """`1 1 1` becomes `1x2`: a value and its repetitions; `_` counts absences."""
    for token, same in groupby(tokens):
        times = len([*same])
        if times == 1:
            yield token
        else:
            yield f"{token}x{times if token == ABSENT else times - 1}"
