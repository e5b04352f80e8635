"""Continue tokens of paginated lists: the next key and the version to read.

Opaque to clients, as in a real server: base64 of a small JSON. A token with version 0 continues at
the present; a client gets it after its own version was compacted.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import orjson

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.json_types import JsonObject, JsonValue, integer_at, string_at


@dataclass(frozen=True, slots=True)
class Continuation:
    """The version at which a list began (0: none), and the last key of the previous page."""

    revision: int
    after: str

    def token(self) -> str:
        body: JsonObject = {"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.after}
        return base64.urlsafe_b64encode(orjson.dumps(body)).decode().rstrip("=")


def parse_continuation(token: str) -> Continuation:
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        parsed: JsonValue = orjson.loads(text)
    except (binascii.Error, ValueError, UnicodeEncodeError) as error:
        raise _refused(str(error)) from error
    revision, after = integer_at(parsed, "rv"), string_at(parsed, "start")
    if revision is None or revision < 0 or not after:
        raise _refused("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    return Continuation(revision, after)


def _refused(why: str) -> api_errors.StatusError:
    return api_errors.bad_request(f"invalid continue token: continue key is not valid: {why}")
