"""The hash of a template, and whether Instances were made from it, remembered by what it says.

Hashing a template takes longer than the rest of a look at its deployment, which comes with every
change of its Instances, and templates rarely change. What is remembered is known by its content, so
it cannot be out of date.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Final

from compute_api_types.template_hash import (
    HashVerdict,
    derive_template_hash,
    judge_template_hash,
)
from compute_operator_kit.wire import JsonObject, encode

REMEMBERED: Final = 4096  # verdicts of 200 bytes; one or two for each deployment of a large cell


class Revisions:
    """The last verdicts, and the last hashes."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[bytes, str], HashVerdict] = OrderedDict()
        self._hashes: OrderedDict[bytes, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def derive_hash(self, template: JsonObject) -> str:
        """What Instances made from this template are to record."""
        content = _digest(template)
        known = self._hashes.get(content)
        if known is None:
            known = self._hashes[content] = derive_template_hash(template)
            if len(self._hashes) > REMEMBERED:
                self._hashes.popitem(last=False)
        else:
            self._hashes.move_to_end(content)
        return known

    def judge_by(self, template: JsonObject) -> Callable[[str], HashVerdict]:
        """What recorded hashes are to this template."""
        return partial(self._judge, template, _digest(template))

    def _judge(self, template: JsonObject, content: bytes, recorded: str) -> HashVerdict:
        if recorded and recorded == self._hashes.get(content):
            return HashVerdict.CURRENT
        place = (content, recorded)
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = judge_template_hash(recorded, template)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(place)
        return known


def _digest(template: JsonObject) -> bytes:
    return blake2b(encode(template), digest_size=16).digest()
