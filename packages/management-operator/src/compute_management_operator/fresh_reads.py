"""Reads that must not come from a cache: one object, or all of a kind that carry a label.

Used right before something that cannot be undone, and for kinds that are not watched. Errors of the
plane go through: the pass ends and is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compute_api_types import labels, names
from compute_management_operator.plane_names import HUB
from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.kube import Page, Selector, Writer
from compute_operator_kit.list_bounds import ListBounds
from compute_operator_kit.objects import Absent, Metadata, Snapshot
from compute_operator_kit.reach import Reach


@dataclass(frozen=True, slots=True)
class FreshReads:
    """In one controller's name."""

    reach: Reach
    writer: Writer

    async def get(self, key: ObjectKey) -> Snapshot | Absent:
        return await self.reach.kube(key.plane, self.writer).get(key)

    async def list_all(
        self, plane: PlaneName, kind: Kind, wanted: Mapping[str, str]
    ) -> tuple[Metadata, ...]:
        """The headers of all objects with these labels; an incomplete answer is none."""
        kube = self.reach.kube(plane, self.writer)
        found: list[Metadata] = []
        token, bounds = "", ListBounds(plane, kind)
        while True:
            page = await kube.list(kind, selector=Selector.of_labels(wanted), continue_token=token)
            if not isinstance(page, Page) or page.unreadable:
                raise UnavailableError(
                    "ListIncomplete",
                    f"listing {kind.plural} on {plane!r}: no complete answer",
                    plane=plane,
                )
            bounds.count(page, token)
            found.extend(item.snapshot.metadata for item in page.items)
            token = page.continue_token
            if not token:
                return tuple(found)

    async def list_of_project(self, kind: Kind, project: PlaneName) -> tuple[Metadata, ...]:
        """Hub objects that say they are the project's."""
        encoded = names.encode_cluster_name(project).value
        return await self.list_all(HUB, kind, {labels.UPSTREAM_CLUSTER_NAME: encoded})
