"""A raw JSON document of an admission request, read by path without exceptions.

A client may send any types. A value of the wrong type reads as absent here and is reported once, by
`shape`, so that no rule checks types. `null` is absent too (`docs/spec/api.md` 14, trap 7).

Path and identity are two views of one place:

    path      spec.placements[1].cityCodes[0]           where it is: shown to the user
    identity  spec.placements[=texas].cityCodes[=DFW]   which one it is, wherever it moves (12.2)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from compute_api_types.quantity import QuantityError, parse_quantity
from compute_api_types.validation.rendering import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from fractions import Fraction

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
Document: TypeAlias = "Mapping[str, Json]"


@dataclass(frozen=True, slots=True)
class Path:
    """A place in a document, spelled as on the wire, and its identity when elements move."""

    text: str = ""
    identity: tuple[str, ...] = ()

    def field(self, name: str) -> Path:
        return Path(f"{self.text}.{name}" if self.text else name, (*self.identity, f".{name}"))

    def key(self, key: str) -> Path:
        """An entry of a map. The user chose the key, so it is shown escaped and cut."""
        return Path(f"{self.text}[{escape(key)}]", (*self.identity, f"[{key}]"))

    def index(self, index: int, known_as: str | None = None) -> Path:
        """An element of a list; one that has a name keeps its identity wherever it moves."""
        identity = f"[{index}]" if known_as is None else f"[={known_as}]"
        return Path(f"{self.text}[{index}]", (*self.identity, identity))


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity as it was written, equal to any other spelling of the same amount."""

    exact: Fraction
    written: str | int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A string in a list."""

    path: Path
    value: str


@dataclass(frozen=True, slots=True)
class Node:
    """An object in a document.

    `like` is its counterpart in another document, which gives the order of named elements. Which
    of two equal elements counts as the duplicate depends on their order, so the stored object is
    read in the order of the wanted one; `index` and path stay those of the stored object.
    """

    path: Path
    content: Document
    index: int = 0
    like: Document | None = None

    def has(self, name: str) -> bool:
        return self.content.get(name) is not None

    def text(self, name: str) -> str:
        return as_text(self.content.get(name))

    def integer(self, name: str) -> int | None:
        value = self.content.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def amount(self, name: str) -> Amount | None:
        return as_amount(self.content.get(name))

    def members(self, name: str) -> Document:
        """The entries of a map, as they are."""
        return as_object(self.content.get(name)) or {}

    def object(self, name: str) -> Node | None:
        value = as_object(self.content.get(name))
        if value is None:
            return None
        like = as_object(self.like.get(name)) if self.like is not None else None
        return Node(self.path.field(name), value, like=like)

    def section(self, name: str) -> Node:
        """As `object`, with an empty one where it is absent and no rule is about its absence."""
        return self.object(name) or Node(self.path.field(name), {})

    def elements(self, name: str, *, named: bool = True) -> Iterator[Node]:
        """The objects of a list; an element of another type is an empty object at its index."""
        path = self.path.field(name)
        if not named:
            for index, value in enumerate(as_list(self.content.get(name))):
                yield Node(path.index(index), as_object(value) or {}, index)
            return
        for index, value, like in self._followed(name):
            known = path.index(index, name_of(value))
            yield Node(known, as_object(value) or {}, index, as_object(like))

    def texts(self, name: str) -> Iterator[Text]:
        """The strings of a list, each known by itself."""
        path = self.path.field(name)
        for index, value, _ in self._followed(name):
            yield Text(path.index(index, name_of(value)), as_text(value))

    def _followed(self, name: str) -> Iterable[tuple[int, Json, Json]]:
        """Index, value and counterpart of each element, in the order of the counterparts."""
        values = as_list(self.content.get(name))
        if self.like is None:
            return ((index, value, None) for index, value in enumerate(values))
        guides = dict(_numbered(as_list(self.like.get(name))))
        ranks = {known_as: rank for rank, known_as in enumerate(guides)}
        entries = list(_numbered(values))
        # Elements that the other document does not have come last, in the order they have here.
        order = sorted(range(len(entries)), key=lambda at: ranks.get(entries[at][0], len(ranks)))
        return ((at, entries[at][1], guides.get(entries[at][0])) for at in order)


def _numbered(values: Iterable[Json]) -> Iterator[tuple[tuple[str, int], Json]]:
    """Elements by name and by how many of that name stand before them, so that none is lost."""
    counts: Counter[str] = Counter()
    for value in values:
        name = name_of(value)
        yield (name, counts[name]), value
        counts[name] += 1


def root(document: Document, like: Document | None = None) -> Node:
    return Node(Path(), document, like=like)


def name_of(element: Json) -> str:
    """What an element of a named list is known by: a string by itself, an object by its `name`."""
    members = as_object(element)
    return as_text(element if members is None else members.get("name"))


def as_text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def as_object(value: Json) -> Document | None:
    return value if isinstance(value, Mapping) else None


def as_list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def as_amount(value: Json) -> Amount | None:
    # A JSON `true` is an int to Python; parse_quantity refuses it.
    if not isinstance(value, str | int):
        return None
    try:
        return Amount(parse_quantity(value), value)
    except QuantityError:
        return None
