"""Template hashes and comparisons with recorded hashes, cached by the content of the template.

Hashing a template takes longer than the rest of a reconcile, which every change of an Instance
causes, and templates rarely change. Entries are keyed by content, so none can be out of date.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final, TypeVar

from compute_api_types.template_hash import (
    HashVerdict,
    derive_template_hash,
    judge_template_hash,
)
from compute_operator_kit.core.json import JsonObject, encode

K = TypeVar("K")
V = TypeVar("V")

MOST_ENTRIES: Final = 4096  # of 200 bytes; one or two for each deployment of a large cell


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a template."""

    hash: str  # recorded on the Instances made from it
    compare: Callable[[str], HashVerdict]  # a recorded hash with this version


class Revisions:
    """The hashes and comparisons used last."""

    def __init__(self) -> None:
        self._hashes: OrderedDict[bytes, str] = OrderedDict()
        self._verdicts: OrderedDict[tuple[bytes, str], HashVerdict] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hashes) + len(self._verdicts)

    def read(self, template: JsonObject) -> Revision:
        content = blake2b(encode(template), digest_size=16).digest()
        current = _cached(self._hashes, content, partial(derive_template_hash, template))

        def compare(recorded: str) -> HashVerdict:
            if recorded == current:
                return HashVerdict.CURRENT
            derive = partial(judge_template_hash, recorded, template)
            return _cached(self._verdicts, (content, recorded), derive)

        return Revision(current, compare)


def _cached(entries: OrderedDict[K, V], key: K, derive: Callable[[], V]) -> V:
    """The entry, derived where it is missing; the least recently used one is evicted."""
    value = entries.get(key)
    if value is None:
        value = entries[key] = derive()
        if len(entries) > MOST_ENTRIES:
            entries.popitem(last=False)
    else:
        entries.move_to_end(key)
    return value
