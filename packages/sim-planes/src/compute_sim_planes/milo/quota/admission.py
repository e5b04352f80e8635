"""Milo's admission plugin: validates new claims and registrations by the root's registrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compute_sim_planes.api_server.admission.chain import AdmissionRequest
from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo import kinds
from compute_sim_planes.milo.quota.claim_validation import (
    derive_active,
    refuse_claim,
    refuse_registration,
)

CLAIMS: Final = GroupResource(kinds.CLAIMS.group, kinds.CLAIMS.plural)
REGISTRATIONS: Final = GroupResource(kinds.REGISTRATIONS.group, kinds.REGISTRATIONS.plural)


class QuotaAdmission:
    """One plugin for all planes: registrations are the root's, whatever the plane of a claim."""

    def __init__(self, root: Store) -> None:
        self._root = root

    def handles(self, request: AdmissionRequest) -> bool:
        return request.operation == "CREATE" and request.kind.group_resource in {
            CLAIMS,
            REGISTRATIONS,
        }

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        refusal = self._validate(request.kind.group_resource, request.desired or {})
        if refusal is not None:
            raise refusal
        return ()

    def _validate(self, resource: GroupResource, desired: JsonObject) -> StatusError | None:
        registrations = [stored.decode() for stored in self._root.bucket(REGISTRATIONS).listed()]
        if resource == CLAIMS:
            return refuse_claim(desired, derive_active(registrations))
        return refuse_registration(desired, registrations)
