"""A project nobody has made: any id answers, and nothing is in it (neighbours.md 2.1). Pure.

Lists and watches go to the root with a selector that nothing matches, so that kinds, formats and
rights are a real server's; what names an object is answered here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlencode

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.request_info import ResourcePath
from e2e.planes.gateway.routing import Target

# No object can carry a label with this value: it would have to differ from itself.
NOTHING: Final = "planes.test/nowhere,!planes.test/nowhere"
_QUESTIONS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
NAMESPACES: Final = GroupResource("", "namespaces")


@dataclass(frozen=True, slots=True)
class AskRoot:
    """Send this to the root and hand on its answer."""

    target: Target


Outcome: TypeAlias = AskRoot | ApiError


def answer_nowhere(method: str, target: Target, asked: ResourcePath | None) -> Outcome:
    """What a project that does not exist says to a request."""
    # Discovery, health, questions about rights: the same in every project.
    if asked is None or asked.group in _QUESTIONS:
        return AskRoot(Target(None, target.path, target.query))
    resource = GroupResource(asked.group, asked.resource)
    if asked.name:
        return api_errors.not_found(resource, asked.name)
    # Lists, watches and deletions of collections find nothing.
    if method in {"GET", "HEAD", "DELETE"}:
        return AskRoot(Target(None, target.path, _matching_nothing(target.query)))
    if asked.namespace:
        return api_errors.not_found(NAMESPACES, asked.namespace)
    # A real Milo would store it under an id nobody owns; there is no storage here for that.
    why = "the gateway stores nothing in a project that does not exist"
    return ApiError(501, "NotImplemented", f"creating {resource}: {why}")


def _matching_nothing(query: str) -> str:
    parts = parse_qsl(query, keep_blank_values=True)
    chosen = [value for name, value in parts if name == "labelSelector" and value]
    others = [(name, value) for name, value in parts if name != "labelSelector"]
    return urlencode([*others, ("labelSelector", ",".join([*chosen, NOTHING]))])
