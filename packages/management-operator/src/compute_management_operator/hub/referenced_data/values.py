"""Values of one ConfigMap or Secret, held from one GET to one write.

They appear in no cache, log, trace, event or metric: the text form of an object here is its size,
so that a value cannot slip into a message or a traceback.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from compute_management_operator.planes import CONFIG_MAP
from compute_operator_kit.core.json import (
    Encoded,
    JsonObject,
    JsonValue,
    encode_canonical,
    member_text,
)
from compute_operator_kit.core.keys import Kind

# A credential of the project's own API server is of no use to a container elsewhere.
UNSUPPORTED_TYPES: Final = frozenset(
    {"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"}
)
DEFAULT_TYPE: Final = "Opaque"


@dataclass(frozen=True, slots=True, repr=False)
class SourceValues:
    """The values of a source and the version they are of."""

    version: str
    size: int
    type: str  # of a Secret; "" for a ConfigMap
    members: tuple[tuple[str, Encoded | None], ...]  # None: the source has none of them

    @override
    def __repr__(self) -> str:
        return f"<{self.size} bytes>"

    @property
    def replaced(self) -> dict[str, JsonValue]:
        return {name: value for name, value in self.members if value is not None}

    @property
    def removed(self) -> dict[str, JsonValue]:
        return dict.fromkeys(name for name, value in self.members if value is None)


def read_values(kind: Kind, body: JsonObject, version: str) -> SourceValues:
    """The values of a served object; sizes without keys, those of Secrets decoded."""
    if kind.kind == CONFIG_MAP.kind:
        text, binary = _texts(body, "data"), _texts(body, "binaryData")
        size = sum(len(value.encode()) for value in text.values())
        size += sum(_decoded_length(value) for value in binary.values())
        members = (("data", _encoded(text)), ("binaryData", _encoded(binary)))
        return SourceValues(version, size, "", members)
    data = _texts(body, "data")
    size = sum(_decoded_length(value) for value in data.values())
    given = member_text(body, "type") or DEFAULT_TYPE
    return SourceValues(version, size, given, (("data", _encoded(data)),))


def _texts(body: JsonObject, member: str) -> dict[str, str]:
    entries = body.get(member)
    if not isinstance(entries, dict):
        return {}
    return {name: value for name, value in entries.items() if isinstance(value, str)}


def _encoded(entries: dict[str, str]) -> Encoded | None:
    return Encoded(encode_canonical({**entries})) if entries else None


def _decoded_length(text: str) -> int:
    try:
        return len(b64decode(text))
    except binascii.Error:
        return len(text)
