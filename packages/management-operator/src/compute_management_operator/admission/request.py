"""The request of an AdmissionReview as a value.

Objects are as the user sent them: no member has a known type, and a removal has no object.
"""

from __future__ import annotations

from dataclasses import dataclass

from compute_operator_kit.core.json import JsonObject, member_object


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One object to be stored."""

    new: JsonObject
    old: JsonObject | None  # the stored object; None for a create
    user: JsonObject  # `userInfo`

    @property
    def extra(self) -> JsonObject:
        return member_object(self.user, "extra")


def parse_request(review: JsonObject) -> AdmissionRequest | None:
    """None for a removal, of which nothing is checked."""
    request = member_object(review, "request")
    new, old = request.get("object"), request.get("oldObject")
    if not isinstance(new, dict):
        return None
    user = member_object(request, "userInfo")
    return AdmissionRequest(new, old if isinstance(old, dict) else None, user)
