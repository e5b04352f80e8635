"""Milo's own admission inside the simulated API server: the reviewer that judges creates of claims
and registrations by the registrations of the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compute_sim_planes.api_server.admission import AdmissionRequest
from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo import kinds
from compute_sim_planes.milo.claim_admission import (
    derive_active,
    refuse_claim,
    refuse_registration,
)

CLAIMS: Final = GroupResource(kinds.CLAIMS.group, kinds.CLAIMS.plural)
REGISTRATIONS: Final = GroupResource(kinds.REGISTRATIONS.group, kinds.REGISTRATIONS.plural)


class QuotaAdmission:
    """One for all planes: registrations are the root's, whatever plane a claim is made in."""

    def __init__(self, root: Store) -> None:
        self._root = root

    def concerns(self, request: AdmissionRequest) -> bool:
        return request.operation == "CREATE" and request.kind.group_resource in {
            CLAIMS,
            REGISTRATIONS,
        }

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        refusal = self._judge(request.kind.group_resource, request.wanted or {})
        if refusal is not None:
            raise refusal
        return ()

    def _judge(self, resource: GroupResource, wanted: JsonObject) -> ApiError | None:
        registrations = [stored.decode() for stored in self._root.bucket(REGISTRATIONS).listed()]
        if resource == CLAIMS:
            return refuse_claim(wanted, derive_active(registrations))
        return refuse_registration(wanted, registrations)
