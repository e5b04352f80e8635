"""Which requests Milo's own admission looks at, and what it says to them. Pure.

Milo does it inside its API server; a webhook would put words of its own before the text, so the
gateway answers. The rules and the words are the simulation's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.request_info import ResourcePath
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo.claim_admission import (
    derive_active,
    refuse_claim,
    refuse_registration,
)
from compute_sim_planes.milo.kinds import CLAIMS, QUOTA_GROUP, REGISTRATIONS

_JUDGED: Final = {CLAIMS.plural, REGISTRATIONS.plural}
_APPLY: Final = "application/apply-patch+"


def may_create(method: str, content_type: str, asked: ResourcePath | None) -> bool:
    """Whether the request can make a claim or a registration; an apply makes what is not there."""
    if asked is None or asked.group != QUOTA_GROUP or asked.resource not in _JUDGED:
        return False
    is_apply = method == "PATCH" and content_type.lower().startswith(_APPLY)
    return (method == "POST" or is_apply) and not asked.subresource


def judge(
    asked: ResourcePath, wanted: JsonObject, registrations: Iterable[JsonObject]
) -> ApiError | None:
    """The refusal of what is to be made, by the registrations of the root."""
    if asked.resource == CLAIMS.plural:
        return refuse_claim(wanted, derive_active(registrations))
    return refuse_registration(wanted, registrations)
