"""Milo's own admission of claims and registrations. Pure.

Milo has it inside its API server. A webhook would add its own words to the message, so the gateway
answers, with the rules and messages of the simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.http.request_info import ResourcePath
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo.kinds import CLAIMS, QUOTA_GROUP, REGISTRATIONS
from compute_sim_planes.milo.quota.claim_validation import (
    derive_active,
    refuse_claim,
    refuse_registration,
)

_JUDGED: Final = {CLAIMS.plural, REGISTRATIONS.plural}
_APPLY: Final = "application/apply-patch+"


def may_create(method: str, content_type: str, asked: ResourcePath | None) -> bool:
    """Whether the request can create a claim or a registration; an apply may create too."""
    if asked is None or asked.group != QUOTA_GROUP or asked.resource not in _JUDGED:
        return False
    is_apply = method == "PATCH" and content_type.lower().startswith(_APPLY)
    return (method == "POST" or is_apply) and not asked.subresource


def find_refusal(
    asked: ResourcePath, wanted: JsonObject, registrations: Iterable[JsonObject]
) -> StatusError | None:
    """The refusal of an object to be created, by the root's registrations."""
    if asked.resource == CLAIMS.plural:
        return refuse_claim(wanted, derive_active(registrations))
    return refuse_registration(wanted, registrations)
