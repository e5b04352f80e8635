"""What is asked before a change is committed, and who may be asked.

A reviewer sees the change as a whole and either lets it pass, with warnings for the client, or
raises the refusal. The server's own rules (schema, metadata, namespaces) are not reviewers: they
come before and cannot be configured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from compute_sim_planes.api_server.identity import User
from compute_sim_planes.api_server.kinds import Kind
from compute_sim_planes.json_types import JsonObject

Operation = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One change that is about to happen. Reviewers look at the objects and leave them alone."""

    operation: Operation
    kind: Kind
    namespace: str
    name: str
    user: User
    wanted: JsonObject | None
    found: JsonObject | None
    subresource: str = ""
    options: JsonObject | None = None
    dry_run: bool = False


class Reviewer(Protocol):
    """Somebody with a say."""

    def concerns(self, request: AdmissionRequest) -> bool:
        """Whether to ask at all. Quick, because it is called on every write."""
        ...

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        """Warnings for the client; raises the refusal."""
        ...


class Admission:
    """All reviewers of a plane, in their order."""

    def __init__(self, reviewers: Sequence[Reviewer] = ()) -> None:
        self.reviewers: list[Reviewer] = [*reviewers]

    async def review(self, request: AdmissionRequest) -> list[str]:
        warnings: list[str] = []
        for reviewer in tuple(self.reviewers):
            if reviewer.concerns(request):
                warnings.extend(await reviewer.review(request))
        return warnings
