"""The authorizer interface: attributes of a request in, a decision out.

A plane authorizes each request once, before it reads the body. The decision may come from the
plane's own roles or from those of another plane, as for Milo's projects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from compute_sim_planes.api_server.authz.identity import User


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request does: to a resource or, with `path`, to a non-resource URL."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the request is allowed, and the reason as text."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    def authorize(self, user: User, attributes: Attributes) -> Decision: ...


class AllowEverything:
    """Allows every request, for planes of tests that are not about authorization."""

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        del user, attributes
        return Decision(allowed=True)


def describe_refusal(user: User, attributes: Attributes, reason: str) -> str:
    """The message of a 403 after its subject."""
    if not attributes.resource:
        text = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
        return f"{text}: {reason}" if reason else text
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    where = (
        f'in the namespace "{attributes.namespace}"'
        if attributes.namespace
        else "at the cluster scope"
    )
    text = (
        f'User "{user.name}" cannot {attributes.verb} resource "{resource}" '
        f'in API group "{attributes.group}" {where}'
    )
    return f"{text}: {reason}" if reason else text
