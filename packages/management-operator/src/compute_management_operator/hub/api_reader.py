"""Live reads from an API server: one object, or the metadata of all objects with given labels.

They precede what cannot be undone, since a cache may lag, and serve kinds that are not watched. An
error of the plane ends the reconcile, which is retried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compute_api_types import labels, names
from compute_management_operator.planes import HUB
from compute_operator_kit.client.interface import FieldOwner, Page, Selector
from compute_operator_kit.client.list_bounds import ListBounds
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot


@dataclass(frozen=True, slots=True)
class ApiReader:
    """Live reads with the identity of one controller."""

    context: OperatorContext
    writer: FieldOwner

    async def get(self, key: ObjectKey) -> Snapshot | Absent:
        return await self.context.kube(key.plane, self.writer).get(key)

    async def list_all(
        self, plane: PlaneName, kind: Kind, with_labels: Mapping[str, str]
    ) -> tuple[Metadata, ...]:
        """The metadata of all objects with these labels; an incomplete list raises."""
        kube = self.context.kube(plane, self.writer)
        selector = Selector.of_labels(with_labels)
        listed: list[Metadata] = []
        token, bounds = "", ListBounds(plane, kind)
        while True:
            page = await kube.list(kind, selector=selector, continue_token=token)
            if not isinstance(page, Page) or page.unreadable:
                raise UnavailableError(
                    "ListIncomplete",
                    f"listing {kind.plural} on {plane!r}: no complete answer",
                    plane=plane,
                )
            bounds.count(page, token)
            listed.extend(item.snapshot.metadata for item in page.items)
            token = page.continue_token
            if not token:
                return tuple(listed)

    async def list_of_project(self, kind: Kind, project: PlaneName) -> tuple[Metadata, ...]:
        """Hub objects with a label that names the project."""
        encoded = names.encode_cluster_name(project).value
        return await self.list_all(HUB, kind, {labels.UPSTREAM_CLUSTER_NAME: encoded})
