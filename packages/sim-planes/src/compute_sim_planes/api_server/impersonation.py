"""Acting as somebody else: `kubectl --as`, and how tests ask what a user may do.

Needs the right `impersonate` on the user and on every group named, checked like any other right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.authorization import Attributes, Authorizer, describe_refusal
from compute_sim_planes.api_server.identity import AUTHENTICATED, User, authenticated
from compute_sim_planes.api_server.kinds import GroupResource

_EXTRA: Final = "impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io"


def impersonate(authorizer: Authorizer, user: User, headers: Mapping[str, str]) -> User:
    """The user a request wants to be; headers have lower-case names."""
    name = headers["impersonate-user"]
    groups = [
        text.strip() for text in headers.get("impersonate-group", "").split(",") if text.strip()
    ]
    extra = {
        unquote(key.removeprefix(_EXTRA)): tuple(value.split(","))
        for key, value in headers.items()
        if key.startswith(_EXTRA)
    }
    for wanted in (
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
        _check(authorizer, user, wanted)
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


def _check(authorizer: Authorizer, user: User, wanted: Attributes) -> None:
    verdict = authorizer.authorize(user, wanted)
    if not verdict.allowed:
        why = describe_refusal(user, wanted, verdict.reason)
        raise api_errors.forbidden(GroupResource(wanted.group, wanted.resource), wanted.name, why)
