"""Answers for a project that does not exist: every id answers, and is empty (neighbours.md 2.1).
Pure.

Lists and watches go to the root with a selector that matches nothing, so that kinds, formats and
authorization are a real server's; requests for single objects are answered here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlencode

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.http.request_info import ResourcePath
from compute_sim_planes.api_server.kinds.kind import GroupResource
from e2e.harness.gateway.routing import RouteTarget

# A contradiction: no object can match it.
MATCHES_NOTHING: Final = "planes.test/nowhere,!planes.test/nowhere"
_QUESTIONS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
NAMESPACES: Final = GroupResource("", "namespaces")


@dataclass(frozen=True, slots=True)
class AskRoot:
    """Forward this request to the root and return its answer."""

    target: RouteTarget


Outcome: TypeAlias = AskRoot | StatusError


def answer_for_missing_project(
    method: str, target: RouteTarget, asked: ResourcePath | None
) -> Outcome:
    """The answer to a request for a project that does not exist."""
    # Discovery, health and access reviews are the same in every project.
    if asked is None or asked.group in _QUESTIONS:
        return AskRoot(RouteTarget(None, target.path, target.query))
    resource = GroupResource(asked.group, asked.resource)
    if asked.name:
        return api_errors.not_found(resource, asked.name)
    # Lists, watches and deletions of collections match nothing.
    if method in {"GET", "HEAD", "DELETE"}:
        return AskRoot(RouteTarget(None, target.path, _matching_nothing(target.query)))
    if asked.namespace:
        return api_errors.not_found(NAMESPACES, asked.namespace)
    # A real Milo would store it under an unowned id; there is no storage for that here.
    why = "the gateway stores nothing in a project that does not exist"
    return StatusError(501, "NotImplemented", f"creating {resource}: {why}")


def _matching_nothing(query: str) -> str:
    parts = parse_qsl(query, keep_blank_values=True)
    chosen = [value for name, value in parts if name == "labelSelector" and value]
    others = [(name, value) for name, value in parts if name != "labelSelector"]
    return urlencode([*others, ("labelSelector", ",".join([*chosen, MATCHES_NOTHING]))])
