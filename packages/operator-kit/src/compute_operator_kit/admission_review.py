"""AdmissionReviews as they travel: what must be there before a handler is asked, and what an answer
says.

Pure. Whether an object is admitted is decided elsewhere; here a request that is none is told apart,
and a refusal gets its full `Status`, so that a user reads causes field by field and never the text
of an exception of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compute_operator_kit.wire import (
    JsonMapping,
    JsonObject,
    UndecodableError,
    decode_foreign,
    member_object,
    member_text,
)

LARGEST_REVIEW: Final = 3 * 1024 * 1024  # faults.md S11: an object of 1.5 MB, twice

# What a requester sees when a handler broke; why it did is for our log.
INTERNAL_ERROR: Final[JsonMapping] = {
    "code": 500,
    "reason": "InternalError",
    "message": "Internal error: the request could not be checked",
}


def parse_review(raw: bytes) -> JsonObject:
    """An AdmissionReview with all that is read from it unlooked; `UndecodableError` for anything
    else.
    """
    review = decode_foreign(raw)
    request = member_object(review, "request")
    resource = member_object(request, "resource")
    is_addressed = all(
        isinstance(resource.get(name), str) for name in ("group", "version", "resource")
    )
    has_object = any(isinstance(request.get(name), dict) for name in ("object", "oldObject"))
    has_user = isinstance(request.get("userInfo"), dict)
    if not (member_text(request, "uid") and is_addressed and has_object and has_user):
        raise UndecodableError("reading an AdmissionReview: not one")
    return review


def complete_answer(answer: JsonObject, refusals: Sequence[JsonMapping]) -> JsonMapping:
    """The answer with the first refusal's status; without one, a refusal is our own error."""
    response = member_object(answer, "response")
    if response.get("allowed") is True:
        return answer
    status = refusals[0] if refusals else INTERNAL_ERROR
    return {**answer, "response": {**response, "allowed": False, "status": status}}
