"""The depth limit of JSON from outside: one constant, and a check that never recurses.

A copy of `compute_api_types.depth`, which this package must not import; a test of the repository
compares the two. Codecs stop at depths of their own, or at the recursion limit of one Python
release: without one limit, a Python release would read what the next refuses.
"""

from __future__ import annotations

from typing import Final

# Below the limit of every codec in use. Objects of Kubernetes are about 15 deep, schemas 60.
MAX_DEPTH: Final = 128
TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"

_NOT_KEPT: Final = bytes(set(range(256)) - set(b'{}[]"'))
_ONE_KIND: Final = bytes.maketrans(b"[]", b"{}")


def is_too_deep(raw: bytes) -> bool:
    """Whether JSON text is nested deeper than `MAX_DEPTH`; undefined for text that is no JSON.

    Every watched object is checked. So many levels need as many pairs of brackets, and most objects
    have fewer.
    """
    # Counted by removing them, which takes an eighth of the time of `bytes.count`.
    if 2 * len(raw) - len(raw.replace(b"{", b"")) - len(raw.replace(b"[", b"")) <= MAX_DEPTH:
        return False
    brackets = _find_brackets(raw)
    for levels_left in range(MAX_DEPTH, 0, -1):
        if len(brackets) <= 2 * levels_left:
            return False
        brackets = brackets.replace(b"{}", b"")  # takes away the innermost level
    return bool(brackets)


def _find_brackets(raw: bytes) -> bytes:
    """The brackets outside of strings, all spelled as braces."""
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    kept = raw.translate(_ONE_KIND, _NOT_KEPT).replace(b'""', b"")
    return b"".join(kept.split(b'"')[::2]) if b'"' in kept else kept
