"""URLs of an API server, built from checked path segments. Pure.

Names and namespaces come from objects that tenants write. Each is checked and percent-encoded as
one segment, so that no name can lead a request to another path.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, urlencode

from compute_operator_kit.core.errors import InvalidSpecError
from compute_operator_kit.core.keys import Kind, ObjectKey


def encode_segment(segment: str) -> str:
    """One percent-encoded path segment; refused if a server could read several out of it.

    The rule of the API machinery for names, and no unprintable characters.
    """
    if segment in {"", ".", ".."} or "/" in segment or "%" in segment or not segment.isprintable():
        raise InvalidSpecError(
            "InvalidPathSegment", f"building a path: {segment[:253]!r} is not one segment of it"
        )
    return quote(segment, safe="")


def group_path(kind: Kind) -> str:
    """The path of the kind's group and version."""
    version = encode_segment(kind.version)
    return f"/apis/{encode_segment(kind.group)}/{version}" if kind.group else f"/api/{version}"


# Built for every request, and an operator has few of them: kinds times namespaces.
@lru_cache(maxsize=1024)
def collection_path(kind: Kind, namespace: str = "") -> str:
    """The path of all objects of a kind, in one namespace if it is given."""
    middle = f"/namespaces/{encode_segment(namespace)}" if namespace else ""
    return f"{group_path(kind)}{middle}/{encode_segment(kind.plural)}"


def object_path(key: ObjectKey, subresource: str = "") -> str:
    tail = f"/{encode_segment(subresource)}" if subresource else ""
    return f"{collection_path(key.kind, key.namespace)}/{encode_segment(key.name)}{tail}"


def with_query(path: str, query: Mapping[str, str]) -> str:
    """The path with the query parameters that are not empty."""
    given = tuple((name, value) for name, value in query.items() if value)
    return f"{path}?{_encode_query(given)}" if given else path


@lru_cache(maxsize=256)
def _encode_query(given: tuple[tuple[str, str], ...]) -> str:
    """Cached: nearly always only the field manager."""
    return urlencode(given, quote_via=quote, safe="")
