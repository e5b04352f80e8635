"""User impersonation by request headers, as `kubectl --as` sends them.

The caller needs the verb `impersonate` on the user and on every named group, checked like any other
permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.authz.authorizer import Attributes, Authorizer, describe_refusal
from compute_sim_planes.api_server.authz.identity import AUTHENTICATED, User, authenticated
from compute_sim_planes.api_server.kinds.kind import GroupResource

_EXTRA: Final = "impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io"


def impersonate(authorizer: Authorizer, user: User, headers: Mapping[str, str]) -> User:
    """The impersonated user; `headers` have lower-case names."""
    name = headers["impersonate-user"]
    groups = [
        text.strip() for text in headers.get("impersonate-group", "").split(",") if text.strip()
    ]
    extra = {
        unquote(key.removeprefix(_EXTRA)): tuple(value.split(","))
        for key, value in headers.items()
        if key.startswith(_EXTRA)
    }
    for attributes in (
        _subject(name),
        *(Attributes("impersonate", resource="groups", name=group) for group in groups),
        *(
            Attributes(
                "impersonate",
                group=_AUTHENTICATION,
                version="v1",
                resource="userextras",
                subresource=key,
                name=value,
            )
            for key, values in extra.items()
            for value in values
        ),
    ):
        _check(authorizer, user, attributes)
    if not groups:
        return User(name, authenticated(name).groups, extra=tuple(extra.items()))
    if AUTHENTICATED not in groups and name != "system:anonymous":
        groups.append(AUTHENTICATED)
    return User(name, tuple(groups), extra=tuple(extra.items()))


def _subject(name: str) -> Attributes:
    if name.startswith("system:serviceaccount:") and name.count(":") == 3:
        _, _, namespace, account = name.split(":")
        return Attributes(
            "impersonate", resource="serviceaccounts", namespace=namespace, name=account
        )
    return Attributes("impersonate", resource="users", name=name)


def _check(authorizer: Authorizer, user: User, attributes: Attributes) -> None:
    verdict = authorizer.authorize(user, attributes)
    if not verdict.allowed:
        why = describe_refusal(user, attributes, verdict.reason)
        raise api_errors.forbidden(
            GroupResource(attributes.group, attributes.resource), attributes.name, why
        )
