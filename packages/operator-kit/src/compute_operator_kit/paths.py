"""URLs of an API server, built from checked parts. Pure.

Names and namespaces come from objects that strangers write. Each is checked as one path segment and
percent-encoded on its own, so that whatever it holds, the request stays under the prefix it was
meant for. Nothing here replaces text inside a URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, urlencode

from compute_operator_kit.errors import InvalidSpecError
from compute_operator_kit.keys import Kind, ObjectKey


def encode_segment(segment: str) -> str:
    """One path segment, percent-encoded; refused where a server might read more than one out of it.

    The same rule as the API machinery's for names, and nothing that cannot be printed.
    """
    if segment in {"", ".", ".."} or "/" in segment or "%" in segment or not segment.isprintable():
        raise InvalidSpecError(
            "InvalidPathSegment", f"building a path: {segment[:253]!r} is not one segment of it"
        )
    return quote(segment, safe="")


def group_path(kind: Kind) -> str:
    """Where the API server serves the kind's group and version, its discovery included."""
    version = encode_segment(kind.version)
    return f"/apis/{encode_segment(kind.group)}/{version}" if kind.group else f"/api/{version}"


# Every request asks for one of these, and an operator knows few of them: kinds times namespaces.
@lru_cache(maxsize=1024)
def collection_path(kind: Kind, namespace: str = "") -> str:
    """All objects of a kind, in one namespace if it is given."""
    middle = f"/namespaces/{encode_segment(namespace)}" if namespace else ""
    return f"{group_path(kind)}{middle}/{encode_segment(kind.plural)}"


def object_path(key: ObjectKey, subresource: str = "") -> str:
    tail = f"/{encode_segment(subresource)}" if subresource else ""
    return f"{collection_path(key.kind, key.namespace)}/{encode_segment(key.name)}{tail}"


def with_query(path: str, query: Mapping[str, str]) -> str:
    """The path with the parameters that have a value."""
    given = tuple((name, value) for name, value in query.items() if value)
    return f"{path}?{_encode_query(given)}" if given else path


@lru_cache(maxsize=256)
def _encode_query(given: tuple[tuple[str, str], ...]) -> str:
    """Nearly always the same few: a field manager, or nothing."""
    return urlencode(given, quote_via=quote, safe="")
