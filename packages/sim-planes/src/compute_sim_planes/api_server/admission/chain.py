"""The admission chain: plugins that review a write before it is committed.

A plugin sees the old and the new object and either admits the request, with warnings for the
client, or raises a `StatusError`. The server's own rules (schema, metadata, namespaces) are not
plugins: they run first and cannot be configured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.json_types import JsonObject

Operation = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One write under review. Plugins must not change the objects."""

    operation: Operation
    kind: Kind
    namespace: str
    name: str
    user: User
    desired: JsonObject | None
    existing: JsonObject | None
    subresource: str = ""
    options: JsonObject | None = None
    dry_run: bool = False


class AdmissionPlugin(Protocol):
    """One reviewer of writes."""

    def handles(self, request: AdmissionRequest) -> bool:
        """Whether `review` is to be called. Must be fast, because every write calls it."""
        ...

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        """Returns warnings for the client; raises a `StatusError` to refuse the request."""
        ...


class AdmissionChain:
    """All plugins of a plane, in their order."""

    def __init__(self, reviewers: Sequence[AdmissionPlugin] = ()) -> None:
        self.reviewers: list[AdmissionPlugin] = [*reviewers]

    async def review(self, request: AdmissionRequest) -> list[str]:
        warnings: list[str] = []
        for reviewer in tuple(self.reviewers):
            if reviewer.handles(request):
                warnings.extend(await reviewer.review(request))
        return warnings
