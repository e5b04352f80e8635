"""Refusals of a plane, as the neighbours' client raises them.

```
ApiError                status, reason, message of the answer
├── NotFoundError       404
├── AlreadyExistsError  409, reason AlreadyExists
├── ConflictError       409, anything else: somebody wrote first, or a precondition does not hold
├── ExpiredError        410: the version is no longer known, list again
├── InvalidError        422
└── ThrottledError      429
WatchEndedError         the stream broke; nothing is known of what came after
```
"""

from __future__ import annotations

from typing import Final

import orjson

from compute_sim_planes.json_types import JsonObject, JsonValue, string_at

# The reason of an answer that is none: whatever is between us and the plane spoke instead.
UNDECODABLE: Final = "UndecodableAnswer"


class ApiError(Exception):
    """The plane refused."""

    def __init__(self, status: int, reason: str, message: str, details: JsonObject) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details


class NotFoundError(ApiError):
    """Nothing is there: the object, its namespace or its kind."""


class AlreadyExistsError(ApiError):
    """The name is taken."""


class ConflictError(ApiError):
    """The object is not as the request assumed."""


class ExpiredError(ApiError):
    """The version is too old."""


class InvalidError(ApiError):
    """The object does not fit its kind."""


class ThrottledError(ApiError):
    """Too many requests, or a kind that is being set up: ask again later."""


class WatchEndedError(Exception):
    """The stream of a watch broke."""


_BY_STATUS: dict[int, type[ApiError]] = {
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
    429: ThrottledError,
}


def error_of(status: int, body: bytes) -> ApiError:
    """The error an answer stands for; a body that is no Status still says its code."""
    try:
        document: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = {}
    found = document if isinstance(document, dict) else {}
    reason = string_at(found, "reason")
    details = found.get("details")
    error = _BY_STATUS.get(status, ApiError)
    if status == 409 and reason == "AlreadyExists":
        error = AlreadyExistsError
    return error(
        status, reason, string_at(found, "message"), details if isinstance(details, dict) else {}
    )
