"""Verifies tokens that another plane issued for Milo, by TokenReview, and caches the result.

It is a Milo that trusts the management cluster as token issuer: a pod authenticates with a token of
its ServiceAccount for the audience `compute-milo`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import aiohttp

from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.json_types import JsonObject, string_at, value_at
from e2e.harness.gateway.identity import Header

AUDIENCE: Final = "compute-milo"
CACHE_SECONDS: Final = 5.0


class Issuer:
    """Verifies tokens with one plane."""

    def __init__(
        self, reviews: str, session: aiohttp.ClientSession, speaking: Sequence[Header]
    ) -> None:
        self._reviews = reviews
        self._session = session
        self._speaking = speaking
        self._cached: dict[str, tuple[float, User]] = {}

    async def user_of(self, token: str) -> User | None:
        """The user of a token; None if it is unknown, expired, or for another audience."""
        until, user = self._cached.get(token, (0.0, None))
        if time.monotonic() < until:
            return user
        self._cached.pop(token, None)
        reviewed = parse_review(await self._ask(token))
        if reviewed is not None:
            self._cached[token] = (time.monotonic() + CACHE_SECONDS, reviewed)
        return reviewed

    async def _ask(self, token: str) -> JsonObject:
        review: JsonObject = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [AUDIENCE]},
        }
        async with self._session.post(self._reviews, headers=self._speaking, json=review) as answer:
            reviewed: JsonObject = await answer.json()
        return reviewed


def parse_review(reviewed: JsonObject) -> User | None:
    """The user of an authenticated review for our audience."""
    audiences = value_at(reviewed, "status", "audiences")
    if value_at(reviewed, "status", "authenticated") is not True:
        return None
    if not isinstance(audiences, list) or AUDIENCE not in audiences:
        return None
    groups = value_at(reviewed, "status", "user", "groups")
    named = [str(group) for group in groups] if isinstance(groups, list) else []
    return User(string_at(reviewed, "status", "user", "username"), tuple(named))
