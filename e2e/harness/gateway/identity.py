"""The user of a request, and the headers that pass it to an API server. Pure.

A kube-apiserver trusts `X-Remote-…` headers from a client with the front proxy's certificate. So
the client's own headers of these names must never be forwarded, and neither are its credentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.x509.oid import NameOID

from compute_sim_planes.api_server.authz.identity import ANONYMOUS, User, authenticated
from e2e.harness.gateway.routing import GROUP

Header: TypeAlias = tuple[str, str]
EXTRA_PREFIX: Final = "X-Remote-Extra-"
# Hop-by-hop headers (RFC 9110 7.6.1), and those that the gateway sets.
_NOT_FORWARDED: Final = frozenset(
    {
        "authorization",
        "connection",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def user_of_token(authorization: str, users: Mapping[str, User]) -> User | None:
    """The user of an Authorization header, or None."""
    scheme, _, token = authorization.partition(" ")
    return users.get(token.strip()) if scheme.lower() == "bearer" else None


def user_of_certificate(der: bytes) -> User:
    """CN is the user, every O a group; without CN the user is anonymous."""
    subject = x509.load_der_x509_certificate(der).subject
    users, groups = (
        [str(attribute.value) for attribute in subject.get_attributes_for_oid(name)]
        for name in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
    )
    return authenticated(users[-1], *groups) if users else ANONYMOUS


def derive_forwarded(headers: Iterable[Header], user: User, project: str | None) -> list[Header]:
    """The client's headers without its claims of identity, and the verified identity."""
    kept = [
        (name, value)
        for name, value in headers
        # The length belongs to the body that is sent and is set with it.
        if name.lower() not in _NOT_FORWARDED | {"content-length"}
        and not name.lower().startswith("x-remote-")
    ]
    identity = [("X-Remote-User", user.name), *(("X-Remote-Group", group) for group in user.groups)]
    return [*kept, *identity, *_parent(project)]


def derive_returned(headers: Iterable[Header]) -> list[Header]:
    """The headers of an answer to the client."""
    return [(name, value) for name, value in headers if name.lower() not in _NOT_FORWARDED]


def _parent(project: str | None) -> list[Header]:
    if project is None:
        return []
    parent = {"parent-api-group": GROUP, "parent-type": "Project", "parent-name": project}
    # A header name cannot contain a slash; the API server decodes it (neighbours.md 4.5).
    return [(f"{EXTRA_PREFIX}iam.miloapis.com%2f{key}", value) for key, value in parent.items()]
