"""Errors of the simulated systems' Kubernetes client.

```
ApiError                status, reason, message of the response
├── NotFoundError       404
├── AlreadyExistsError  409, reason AlreadyExists
├── ConflictError       409, any other reason: a concurrent write or a failed precondition
├── ExpiredError        410: the version was compacted, list again
├── InvalidError        422
└── ThrottledError      429
WatchEndedError         the stream broke; later events are unknown
```
"""

from __future__ import annotations

from typing import Final

import orjson

from compute_sim_planes.json_types import JsonObject, JsonValue, string_at

# The reason when a response has no JSON body, for example from a proxy.
UNDECODABLE: Final = "UndecodableAnswer"


class ApiError(Exception):
    """The API server refused the request."""

    def __init__(self, status: int, reason: str, message: str, details: JsonObject) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details


class NotFoundError(ApiError):
    """The object, its namespace or its kind does not exist."""


class AlreadyExistsError(ApiError):
    """An object of this name exists."""


class ConflictError(ApiError):
    """The object is not in the state that the request assumed."""


class ExpiredError(ApiError):
    """The version is too old."""


class InvalidError(ApiError):
    """The object is invalid for its kind."""


class ThrottledError(ApiError):
    """Too many requests, or a kind that is not ready yet: retry later."""


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
    """The error of a response; a body that is no Status still gives the code."""
    try:
        document: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = {}
    status_object = document if isinstance(document, dict) else {}
    reason = string_at(status_object, "reason")
    details = status_object.get("details")
    error = _BY_STATUS.get(status, ApiError)
    if status == 409 and reason == "AlreadyExists":
        error = AlreadyExistsError
    return error(
        status,
        reason,
        string_at(status_object, "message"),
        details if isinstance(details, dict) else {},
    )
