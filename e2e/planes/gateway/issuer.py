"""Tokens that another plane issued for Milo: shown to who issued them, believed for a moment.

As a Milo that trusts the management cluster as a token issuer: a pod proves itself with the token
of its ServiceAccount, made for the audience `compute-milo` and for nobody else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import aiohttp

from compute_sim_planes.api_server.identity import User
from compute_sim_planes.json_types import JsonObject, string_at, value_at
from e2e.planes.gateway.identity import Header

AUDIENCE: Final = "compute-milo"
BELIEVED_SECONDS: Final = 5.0


class Issuer:
    """Asks one plane, by its TokenReview."""

    def __init__(
        self, reviews: str, session: aiohttp.ClientSession, speaking: Sequence[Header]
    ) -> None:
        self._reviews = reviews
        self._session = session
        self._speaking = speaking
        self._believed: dict[str, tuple[float, User]] = {}

    async def user_of(self, token: str) -> User | None:
        """Whose token it is; None where it is nobody's, expired, or meant for somebody else."""
        until, user = self._believed.get(token, (0.0, None))
        if time.monotonic() < until:
            return user
        self._believed.pop(token, None)
        found = parse_review(await self._ask(token))
        if found is not None:
            self._believed[token] = (time.monotonic() + BELIEVED_SECONDS, found)
        return found

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
    """The user of a review that says yes, for our audience."""
    audiences = value_at(reviewed, "status", "audiences")
    if value_at(reviewed, "status", "authenticated") is not True:
        return None
    if not isinstance(audiences, list) or AUDIENCE not in audiences:
        return None
    groups = value_at(reviewed, "status", "user", "groups")
    named = [str(group) for group in groups] if isinstance(groups, list) else []
    return User(string_at(reviewed, "status", "user", "username"), tuple(named))
