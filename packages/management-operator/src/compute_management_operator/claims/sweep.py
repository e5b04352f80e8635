"""One sweep over the claims of a project that name a cell, for those without backing in its city.

Without it a cell can spend the quota of a project in which it runs nothing, unnoticed. It reads
only: one bounded list, in pages, of objects with our label.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_management_operator.claims.findings import UNKNOWN_CELL, ProjectFindings
from compute_management_operator.claims.observe import (
    Backing,
    ProjectClaim,
    derive_backing,
    find_holder,
    find_placed,
    read_claim,
)
from compute_management_operator.planes import CLAIM, CLUSTER, DEPLOYMENT, HUB
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.client.interface import Expired, KubeClient, NotServed, Selector
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.core.objects import Absent

OURS: Final = Selector(labels=labels.SOURCE_CLUSTER)
MOST_PAGES: Final = 20  # of 500 claims: far more than a project has Instances


def is_readable(caches: Caches, plane: PlaneName) -> bool:
    """Whether the caches of deployments and Clusters are complete: an object that is not listed yet
    is not missing.
    """
    if HUB not in caches.planes(Role.HUB) or plane not in caches.planes(Role.PROJECT):
        return False
    return caches.lister(HUB, CLUSTER).is_synced and caches.lister(plane, DEPLOYMENT).is_synced


async def sweep(kube: KubeClient, caches: Caches, plane: PlaneName) -> ProjectFindings:
    """The findings of all claims, up to the bound; none on a plane without the kind."""
    findings = ProjectFindings(is_whole=False)
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
            _add(findings, read_claim(item.snapshot), caches, plane)
        token = page.continue_token
        if not token:
            findings.is_whole = True
            break
    return findings


def _add(findings: ProjectFindings, claim: ProjectClaim, caches: Caches, plane: PlaneName) -> None:
    holder = find_holder(caches, claim.cell)
    deployment = "" if claim.slot is None else claim.slot[0]
    placed = find_placed(caches, plane, claim.key.namespace, deployment)
    if derive_backing(claim, placed, holder) is not Backing.BACKED:
        findings.add(UNKNOWN_CELL if isinstance(holder, Absent) else claim.cell, claim)
