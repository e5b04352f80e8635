"""The hash of a template, and whether Instances were made from it, remembered by what it says.

Hashing a template takes longer than the rest of a look at its deployment, which comes with every
change of its Instances, and templates rarely change. What is remembered is known by its content, so
it cannot be out of date.
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
from compute_operator_kit.wire import JsonObject, encode

K = TypeVar("K")
V = TypeVar("V")

REMEMBERED: Final = 4096  # verdicts of 200 bytes; one or two for each deployment of a large cell


@dataclass(frozen=True, slots=True)
class Revision:
    """What a template is to Instances."""

    hash: str  # what those made from it are to record
    judge: Callable[[str], HashVerdict]  # what a recorded hash is to it


class Revisions:
    """The last hashes and verdicts."""

    def __init__(self) -> None:
        self._hashes: OrderedDict[bytes, str] = OrderedDict()
        self._verdicts: OrderedDict[tuple[bytes, str], HashVerdict] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hashes) + len(self._verdicts)

    def read(self, template: JsonObject) -> Revision:
        content = blake2b(encode(template), digest_size=16).digest()
        current = _recall(self._hashes, content, partial(derive_template_hash, template))

        def judge(recorded: str) -> HashVerdict:
            if recorded == current:
                return HashVerdict.CURRENT
            derive = partial(judge_template_hash, recorded, template)
            return _recall(self._verdicts, (content, recorded), derive)

        return Revision(current, judge)


def _recall(known: OrderedDict[K, V], key: K, derive: Callable[[], V]) -> V:
    """What is remembered, or derived and remembered; what was not asked for longest goes first."""
    found = known.get(key)
    if found is None:
        found = known[key] = derive()
        if len(known) > REMEMBERED:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return found
