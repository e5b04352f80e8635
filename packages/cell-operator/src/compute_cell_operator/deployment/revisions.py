"""Whether Instances were made from a template, remembered by what the template says.

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

from compute_api_types.template_hash import HashVerdict, judge_template_hash
from compute_operator_kit.wire import JsonObject, encode

REMEMBERED: Final = 4096  # verdicts of 200 bytes; one or two for each deployment of a large cell


class Revisions:
    """The last verdicts."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[bytes, str], HashVerdict] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def judge_by(self, template: JsonObject) -> Callable[[str], HashVerdict]:
        """What recorded hashes are to this template."""
        content = blake2b(encode(template), digest_size=16).digest()
        return partial(self._judge, template, content)

    def _judge(self, template: JsonObject, content: bytes, recorded: str) -> HashVerdict:
        place = (content, recorded)
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = judge_template_hash(recorded, template)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(place)
        return known
