"""The question about rights, and who may answer it.

A plane asks once per request, before anything else of it is looked at. Where rights come from is
the answerer's matter: the plane's own roles, or those of another plane, as Milo's projects have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from compute_sim_planes.api_server.identity import User


@dataclass(frozen=True, slots=True)
class Attributes:
    """What somebody wants to do: to a resource, or (with `path`) to anything else."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it is allowed, and why or why not in words."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    def authorize(self, user: User, attributes: Attributes) -> Verdict: ...


class AllowEverything:
    """No rights are checked: for planes of tests about something else."""

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        del user, attributes
        return Verdict(allowed=True)


def describe_refusal(user: User, attributes: Attributes, reason: str) -> str:
    """The words of a 403 after its subject."""
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
