"""What an AdmissionReview asks, as a value; everything in it was written by somebody else."""

from __future__ import annotations

from dataclasses import dataclass

from compute_operator_kit.wire import JsonObject, member_object


@dataclass(frozen=True, slots=True)
class Request:
    """One object that somebody wants to store."""

    wanted: JsonObject
    found: JsonObject | None  # as it is stored; None for a create
    user: JsonObject  # `userInfo`

    @property
    def extra(self) -> JsonObject:
        return member_object(self.user, "extra")


def parse_request(review: JsonObject) -> Request | None:
    """The request of an AdmissionReview; None for a removal, about which nothing is checked."""
    request = member_object(review, "request")
    wanted, found = request.get("object"), request.get("oldObject")
    if not isinstance(wanted, dict):
        return None
    user = member_object(request, "userInfo")
    return Request(wanted, found if isinstance(found, dict) else None, user)
