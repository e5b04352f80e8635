"""Continue tokens: where a list goes on, and at which version.

Opaque to clients, as in a real server: base64 of a small JSON. A token without a version (0) goes
on in the present; it is what a client gets when its version was compacted away meanwhile.
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
    """The version a list began at (0: none), and the last key it has shown."""

    revision: int
    after: str

    def token(self) -> str:
        body: JsonObject = {"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.after}
        return base64.urlsafe_b64encode(orjson.dumps(body)).decode().rstrip("=")


def parse_continuation(token: str) -> Continuation:
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        found: JsonValue = orjson.loads(text)
    except (binascii.Error, ValueError, UnicodeEncodeError) as error:
        raise _refused(str(error)) from error
    revision, after = integer_at(found, "rv"), string_at(found, "start")
    if revision is None or revision < 0 or not after:
        raise _refused("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    return Continuation(revision, after)


def _refused(why: str) -> api_errors.ApiError:
    return api_errors.bad_request(f"invalid continue token: continue key is not valid: {why}")
