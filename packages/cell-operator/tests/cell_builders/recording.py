"""Recorded objects of the Go operators, as documents: what a test without planes needs of them.

`cell_builders.predecessor` plants them into a simulated world.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import orjson

from cell_builders.documents import NS, PROJECT, PROJECT_NAMESPACE
from compute_operator_kit.core.json import JsonObject

RECORDING: Final = Path(__file__).parents[1] / "data" / "go_operators.json"
THEIR_HASH: Final = "55fdb58d85"

_RENAMED: Final = (
    (b"ns-c0611ce2-5836-4563-bef8-8bdb209e3fd6", NS.encode()),
    (b'"cluster-delta"', f'"cluster-{PROJECT}"'.encode()),
    (b'"name":"delta"', f'"name":"{PROJECT}"'.encode()),
    (
        b'"meta.datumapis.com/upstream-namespace":"default"',
        f'"meta.datumapis.com/upstream-namespace":"{PROJECT_NAMESPACE}"'.encode(),
    ),
)


@cache
def _read() -> bytes:
    recorded = orjson.dumps(orjson.loads(RECORDING.read_bytes()))
    for old, new in _RENAMED:
        recorded = recorded.replace(old, new)
    return recorded


def recorded(plane: str, kind: str) -> list[JsonObject]:
    """Objects of one kind: of `cell`, `hub` or `project`."""
    found: list[JsonObject] = orjson.loads(_read())[plane]
    return [one for one in found if one["kind"] == kind]
