"""Finds what a cell left behind: copies on the hub, claims in every project it may have used.

What cannot be read is a value of its own, `Unread`, and never an empty list: the command then ends
as incomplete and is run again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_api_types import labels, names
from compute_cell_operator.kinds import INSTANCE, NAMESPACE
from compute_operator_kit.clock import Clock
from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.keys import Kind
from compute_operator_kit.kube import EVERYTHING, Expired, Kube, NotServed, Page, Selector
from compute_operator_kit.objects import Metadata, Snapshot
from compute_quota_client import FoundClaim, QuotaClient, QuotaError

HUB: Final = "hub"
PACE: Final = timedelta(milliseconds=200)  # operations.md 8.1: at most 5 projects per second


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read, and why."""

    plane: str
    what: str
    cause: str


@dataclass(frozen=True, slots=True)
class Copy:
    """An Instance on the hub that the cell wrote."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that the cell made."""

    project: str
    found: FoundClaim


async def find_copies(hub: Kube, cell: str) -> list[Copy | Unread]:
    """Every copy of the cell, in Namespaces that stand for one of a project."""
    selector = Selector.of_labels({labels.CELL: cell})
    found = await _list(hub, INSTANCE, selector)
    if isinstance(found, Unread):
        return [found]
    return [Copy(one) for one in found if names.parse_hub_namespace(one.key.namespace) is not None]


async def find_projects(hub: Kube) -> list[str | Unread]:
    """Every project that the identity labels of a hub Namespace decode to."""
    found = await _list(hub, NAMESPACE, EVERYTHING)
    if isinstance(found, Unread):
        return [found]
    ours = (one.metadata for one in found if names.parse_hub_namespace(one.key.name) is not None)
    return list(dict.fromkeys(_decode_project(metadata) for metadata in ours))


def _decode_project(namespace: Metadata) -> str | Unread:
    owner = f'Namespace "{namespace.name}"'
    try:
        project = names.decode_project(namespace.labels, namespace.annotations, owner=owner)
    except names.UndecodableIdentityError as cause:
        return Unread(HUB, namespace.name, str(cause))
    if names.is_dns_label(project):
        return project
    return Unread(HUB, namespace.name, f"{project[:63]!r} is no DNS label")


async def find_claims(
    quota: QuotaClient, projects: Iterable[str], cell: str, clock: Clock
) -> AsyncIterator[Claim | Unread]:
    """Every claim of the cell, project by project."""
    for project in projects:
        try:
            claims = await quota.project(project).list(f"{labels.SOURCE_CLUSTER}={cell}")
        except QuotaError as error:
            yield Unread(project, "resourceclaims", str(error))
            claims = []
        for found in claims:
            yield Claim(project, found)
        await clock.sleep(PACE)


async def _list(hub: Kube, kind: Kind, selector: Selector) -> list[Snapshot] | Unread:
    """All pages; a list that expired half-way begins anew."""
    found: list[Snapshot] = []
    token = ""
    while True:
        try:
            page = await hub.list(kind, selector=selector, continue_token=token)
        except ReconcileError as error:
            return Unread(HUB, kind.plural, str(error))
        match page:
            case NotServed():
                return Unread(HUB, kind.plural, "the kind is not served")
            case Expired():
                found, token = [], ""
            case Page():
                if page.unreadable:
                    return Unread(HUB, kind.plural, f"{page.unreadable} of them are illegible")
                found += [item.snapshot for item in page.items]
                token = page.continue_token
                if not token:
                    return found
