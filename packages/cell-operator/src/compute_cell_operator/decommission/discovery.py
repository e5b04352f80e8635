"""Discovery of the objects that a cell left: copies and Lease on the hub, claims in the projects.

A list that cannot be read is an `UnreadPlane`, never an empty list: the command then ends as
incomplete and is run again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final

from compute_api_types import labels, names
from compute_cell_operator.decommission.delays import PROJECT_INTERVAL
from compute_cell_operator.planes import HUB as HUB_PLANE
from compute_cell_operator.planes import INSTANCE, NAMESPACE
from compute_operator_kit.client.interface import (
    EVERYTHING,
    Expired,
    KubeClient,
    NotServed,
    Page,
    Selector,
)
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.keys import Kind, ObjectKey
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot
from compute_operator_kit.process.leader import LEASE
from compute_quota_client import FoundClaim, QuotaClient, QuotaError

HUB: Final = "hub"
# A server compacts every few minutes: one that refuses every page would be asked without end.
MOST_EXPIRATIONS: Final = 3


@dataclass(frozen=True, slots=True)
class UnreadPlane:
    """A list or object that could not be read, and why."""

    plane: str
    what: str
    cause: str


@dataclass(frozen=True, slots=True)
class LeftCopy:
    """An Instance on the hub that the cell wrote."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class LeftClaim:
    """A claim that the cell created."""

    project: str
    claim: FoundClaim


async def find_copies(hub: KubeClient, cell: str) -> list[LeftCopy | UnreadPlane]:
    """Every copy of the cell, in Namespaces of projects."""
    selector = Selector.of_labels({labels.CELL: cell})
    copies = await _list(hub, INSTANCE, selector)
    if isinstance(copies, UnreadPlane):
        return [copies]
    return [
        LeftCopy(copy)
        for copy in copies
        if names.parse_hub_namespace(copy.key.namespace) is not None
    ]


async def find_lease(hub: KubeClient, cell: str) -> Snapshot | UnreadPlane | None:
    """The Lease that the cell renewed; None where the hub has none."""
    name = names.derive_cell_lease(cell)
    try:
        lease = await hub.get(ObjectKey(HUB_PLANE, LEASE, names.CELL_LEASES, name))
    except ReconcileError as error:
        return UnreadPlane(HUB, f"{names.CELL_LEASES}/{name}", str(error))
    return None if isinstance(lease, Absent) else lease


async def find_projects(hub: KubeClient) -> list[str | UnreadPlane]:
    """Every project that the identity labels of a hub Namespace decode to."""
    namespaces = await _list(hub, NAMESPACE, EVERYTHING)
    if isinstance(namespaces, UnreadPlane):
        return [namespaces]
    ours = (
        namespace.metadata
        for namespace in namespaces
        if names.parse_hub_namespace(namespace.key.name) is not None
    )
    return list(dict.fromkeys(_decode_project(metadata) for metadata in ours))


def _decode_project(namespace: Metadata) -> str | UnreadPlane:
    owner = f'Namespace "{namespace.name}"'
    try:
        project = names.decode_project(namespace.labels, namespace.annotations, owner=owner)
    except names.UndecodableIdentityError as cause:
        return UnreadPlane(HUB, namespace.name, str(cause))
    if names.is_dns_label(project):
        return project
    return UnreadPlane(HUB, namespace.name, f"{project[:63]!r} is no DNS label")


async def find_claims(
    quota: QuotaClient, projects: Iterable[str], cell: str, clock: Clock
) -> AsyncIterator[LeftClaim | UnreadPlane]:
    """Every claim of the cell, project by project."""
    for project in projects:
        try:
            claims = await quota.project(project).list(f"{labels.SOURCE_CLUSTER}={cell}")
        except QuotaError as error:
            yield UnreadPlane(project, "resourceclaims", str(error))
            claims = []
        for claim in claims:
            yield LeftClaim(project, claim)
        await clock.sleep(PROJECT_INTERVAL)


async def _list(hub: KubeClient, kind: Kind, selector: Selector) -> list[Snapshot] | UnreadPlane:
    """All pages; a list that expires half-way starts again, a few times."""
    listed: list[Snapshot] = []
    token, expirations = "", 0
    while True:
        try:
            page = await hub.list(kind, selector=selector, continue_token=token)
        except ReconcileError as error:
            return UnreadPlane(HUB, kind.plural, str(error))
        match page:
            case NotServed():
                return UnreadPlane(HUB, kind.plural, "the kind is not served")
            case Expired():
                expirations += 1
                if expirations > MOST_EXPIRATIONS:
                    return UnreadPlane(HUB, kind.plural, "the list expires before its end")
                listed, token = [], ""
            case Page():
                if page.unreadable:
                    return UnreadPlane(HUB, kind.plural, f"{page.unreadable} of them are illegible")
                listed += [item.snapshot for item in page.items]
                token = page.continue_token
                if not token:
                    return listed
