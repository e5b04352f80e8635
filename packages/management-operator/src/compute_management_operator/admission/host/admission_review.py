"""AdmissionReviews on the wire: the members that a handler relies on, and the answer's `Status`.

Pure. A request that is no review is refused before a handler sees it; a refusal gets its whole
`Status`, so that a user reads causes field by field and never the text of an exception of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compute_operator_kit.core.json import (
    JsonMapping,
    JsonObject,
    UndecodableError,
    decode_foreign,
    member_object,
    member_text,
)

LARGEST_REVIEW: Final = 3 * 1024 * 1024  # faults.md S11: an object of 1.5 MB, twice

# The answer when a handler raised; the reason is in our log.
INTERNAL_ERROR: Final[JsonMapping] = {
    "code": 500,
    "reason": "InternalError",
    "message": "Internal error: the request could not be checked",
}


def parse_review(raw: bytes) -> JsonObject:
    """An AdmissionReview with every member that kopf reads; `UndecodableError` for any other
    document.
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


def as_creation(review: JsonObject) -> JsonObject:
    """The review for kopf, which keeps a record of the object for every other operation."""
    return {**review, "request": {**member_object(review, "request"), "operation": "CREATE"}}


def complete_answer(answer: JsonObject, refusals: Sequence[JsonMapping]) -> JsonMapping:
    """The answer with the first refusal's status; without one, a refusal is our own error."""
    response = member_object(answer, "response")
    if response.get("allowed") is True:
        return answer
    status = refusals[0] if refusals else INTERNAL_ERROR
    return {**answer, "response": {**response, "allowed": False, "status": status}}
