"""Lists the claims of one project that name a cell and finds those that nothing in its city backs.

Prevents that a cell spends the quota of a project it runs nothing for without being noticed. Reads
only: one list in pages, bounded, of objects that carry our label.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_management_operator.claims.findings import UNKNOWN_CELL, ProjectFindings
from compute_management_operator.claims.observe import (
    Backing,
    Claim,
    find_holder,
    find_placed,
    judge_backing,
    read_claim,
)
from compute_management_operator.kinds import CLAIM, CLUSTER, DEPLOYMENT
from compute_management_operator.plane_names import HUB
from compute_operator_kit.cache import Caches
from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.keys import PlaneName, Role
from compute_operator_kit.kube import Expired, Kube, NotServed, Selector
from compute_operator_kit.objects import Absent

OURS: Final = Selector(labels=labels.SOURCE_CLUSTER)
MOST_PAGES: Final = 20  # of 500: far beyond the instances of a project


def can_judge(caches: Caches, plane: PlaneName) -> bool:
    """Whether deployments and Clusters are all known: what is not listed yet is not missing."""
    if HUB not in caches.planes(Role.HUB) or plane not in caches.planes(Role.PROJECT):
        return False
    return caches.view(HUB, CLUSTER).is_synced and caches.view(plane, DEPLOYMENT).is_synced


async def sweep(kube: Kube, caches: Caches, plane: PlaneName) -> ProjectFindings:
    """Everything the project has, up to the bound; a plane without the kind has none."""
    found = ProjectFindings(is_whole=False)
    token = ""
    for _ in range(MOST_PAGES):
        page = await kube.list(CLAIM, selector=OURS, continue_token=token)
        if isinstance(page, NotServed):
            return ProjectFindings()
        if isinstance(page, Expired):
            raise UnavailableError(
                "ListIncomplete", f"listing claims on {plane!r}: the list expired", plane=plane
            )
        for item in page.items:
            _judge(read_claim(item.snapshot), caches, plane, found)
        token = page.continue_token
        if not token:
            found.is_whole = True
            break
    return found


def _judge(claim: Claim, caches: Caches, plane: PlaneName, found: ProjectFindings) -> None:
    holder = find_holder(caches, claim.cell)
    deployment = "" if claim.slot is None else claim.slot[0]
    placed = find_placed(caches, plane, claim.key.namespace, deployment)
    if judge_backing(claim, placed, holder) is not Backing.BACKED:
        found.add(UNKNOWN_CELL if isinstance(holder, Absent) else claim.cell, claim)
