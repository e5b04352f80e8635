"""What one Prometheus would have stored of a run: a row of samples per series.

Every scrape is one place in every row. A series that a scrape does not show is marked stale once,
as Prometheus does, and is absent after that. Rows are printed in the notation of promtool's rule
tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

ABSENT: Final = "_"
STALE: Final = "stale"


class Series(NamedTuple):
    """A metric and its labels, those of the target among them."""

    metric: str
    labels: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        inside = ",".join(f'{name}="{_escape(value)}"' for name, value in self.labels)
        return f"{self.metric}{{{inside}}}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@dataclass(slots=True)
class Recording:
    """One Prometheus beside one cluster."""

    scrapes: int = 0
    _rows: dict[Series, dict[int, float]] = field(default_factory=dict[Series, dict[int, float]])

    def add(self, samples: Mapping[Series, float]) -> None:
        """One scrape of all targets; those that did not answer have nothing in it."""
        for series, value in samples.items():
            self._rows.setdefault(series, {})[self.scrapes] = value
        self.scrapes += 1

    def series(self) -> Iterable[Series]:
        return self._rows.keys()

    def print_rows(self, is_read: Callable[[str], bool]) -> list[dict[str, str]]:
        """The rows of metrics that somebody reads, as promtool takes them."""
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
    """`1 1 1` is `1x2`: a value and how often it is repeated; an absence counts itself."""
    for token, same in groupby(tokens):
        times = len([*same])
        if times == 1:
            yield token
        else:
            yield f"{token}x{times if token == ABSENT else times - 1}"
