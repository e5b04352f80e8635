"""Who asks, and how an API server behind the gateway is told. Pure.

A kube-apiserver believes `X-Remote-…` headers from whoever holds the front proxy's certificate. So
what a client sends under these names must never get through, and its own credentials stop here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.x509.oid import NameOID

from compute_sim_planes.api_server.identity import ANONYMOUS, User, authenticated
from e2e.planes.gateway.routing import GROUP

Header: TypeAlias = tuple[str, str]
EXTRA_PREFIX: Final = "X-Remote-Extra-"
# Of one connection (RFC 9110 7.6.1), or written anew by whoever forwards.
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
    """The user of an Authorization header; None when it proves nothing."""
    scheme, _, token = authorization.partition(" ")
    return users.get(token.strip()) if scheme.lower() == "bearer" else None


def user_of_certificate(der: bytes) -> User:
    """CN is the user, every O a group; a certificate without a name is nobody's."""
    subject = x509.load_der_x509_certificate(der).subject
    users, groups = (
        [str(attribute.value) for attribute in subject.get_attributes_for_oid(name)]
        for name in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
    )
    return authenticated(users[-1], *groups) if users else ANONYMOUS


def derive_forwarded(headers: Iterable[Header], user: User, project: str | None) -> list[Header]:
    """The headers an API server gets: the client's without its claims, and who it is."""
    kept = [
        (name, value)
        for name, value in headers
        # The length is that of the body we send, and whoever sends it counts it.
        if name.lower() not in _NOT_FORWARDED | {"content-length"}
        and not name.lower().startswith("x-remote-")
    ]
    identity = [("X-Remote-User", user.name), *(("X-Remote-Group", group) for group in user.groups)]
    return [*kept, *identity, *_parent(project)]


def derive_returned(headers: Iterable[Header]) -> list[Header]:
    """The headers a client gets back."""
    return [(name, value) for name, value in headers if name.lower() not in _NOT_FORWARDED]


def _parent(project: str | None) -> list[Header]:
    if project is None:
        return []
    parent = {"parent-api-group": GROUP, "parent-type": "Project", "parent-name": project}
    # A slash cannot stand in a header's name; the API server decodes it (neighbours.md 4.5).
    return [(f"{EXTRA_PREFIX}iam.miloapis.com%2f{key}", value) for key, value in parent.items()]
