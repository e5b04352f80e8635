"""Rendering of a user's values in one line of an error: quoted, escaped and cut.

The error is printed by terminals, audit logs and telemetry, which must not receive a value of a
megabyte, a line break or a character that reverses the text. Strings appear in double quotes,
numbers bare, objects as JSON, as in the field errors of Kubernetes (`docs/spec/api.md` 12.1).
Nothing here raises, for any value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from compute_api_types.validation.document import Json

# The longest name a Kubernetes object can have is 253 characters: every legal one is shown whole.
LONGEST_SHOWN: Final = 256
# Objects are shown only where another type was expected; a few levels are enough.
_DEEPEST_SHOWN: Final = 4
# Python refuses to print integers of more than 4300 digits; 512 bits are 155, which still fit.
_LARGEST_SHOWN_BITS: Final = 512
# Room for 400 city codes of three letters; more would bury what is wrong.
_LONGEST_LIST: Final = 2000
_MORE: Final = "…"
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(text: str) -> str:
    """The text without quotes, in printable characters, cut after `LONGEST_SHOWN` of them."""
    return _cut(_ESCAPES.get(character) or _printable(character) for character in text)


def quote(text: str) -> str:
    return f'"{escape(text)}"'


def quote_all(texts: Sequence[str]) -> str:
    """`"a", "b"`; of a long list the beginning and how many are left out."""
    shown: list[str] = []
    length = 0
    for text in texts:
        if length > _LONGEST_LIST:
            return f"{', '.join(shown)} and {len(texts) - len(shown)} more"
        shown.append(quote(text))
        length += len(shown[-1])
    return ", ".join(shown) or "none"


def render(value: Json) -> str:
    """One value as it appears in a field error."""
    if isinstance(value, str):
        return quote(value)
    return _cut(_parts(value, _DEEPEST_SHOWN))


def _cut(parts: Iterable[str]) -> str:
    """Joins the parts until the limit; the rest is not even produced."""
    shown: list[str] = []
    length = 0
    for part in parts:
        length += len(part)
        if length > LONGEST_SHOWN:
            shown.append(_MORE)
            break
        shown.append(part)
    return "".join(shown)


def _printable(character: str) -> str:
    # Not printable are also lone surrogates, which no encoder takes, and marks that reverse the
    # reading direction.
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _parts(value: Json, depth: int) -> Iterator[str]:
    """A value as JSON, piece by piece, so that a reader can stop in the middle of a large one."""
    if isinstance(value, str):
        yield quote(value)
    elif isinstance(value, Mapping):
        yield from _object_parts(value, depth)
    elif isinstance(value, Sequence):
        yield from _list_parts(value, depth)
    else:
        yield _scalar(value)


def _object_parts(value: Mapping[str, Json], depth: int) -> Iterator[str]:
    if not depth:
        yield f"{{{_MORE}}}"
        return
    yield "{"
    for count, (name, member) in enumerate(value.items()):
        yield f"{',' if count else ''}{quote(name)}:"
        yield from _parts(member, depth - 1)
    yield "}"


def _list_parts(value: Sequence[Json], depth: int) -> Iterator[str]:
    if not depth:
        yield f"[{_MORE}]"
        return
    yield "["
    for count, member in enumerate(value):
        yield "," if count else ""
        yield from _parts(member, depth - 1)
    yield "]"


def _scalar(value: float | bool | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > _LARGEST_SHOWN_BITS:
        return f"an integer of {value.bit_length()} bits"
    return str(value)
