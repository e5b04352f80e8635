"""Asks a project's own plane whether a user may use a network (api.md 12.3, rule 44).

The question is about the requester, with the groups, uid and extra of the request; asked in our own
name it would grant what we may do. No answer is `FAILED`, never a yes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from compute_api_types.validation import Review
from compute_management_operator.kinds import NETWORK
from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.kube import Kube
from compute_operator_kit.metrics_server import ACCESS_REVIEW
from compute_operator_kit.wire import JsonObject, member_object, member_text

AT_ONCE: Final = 8  # a tenant names as many networks as an object has room for


async def review_networks(
    kube: Kube, user: JsonObject, namespace: str, networks: Iterable[str]
) -> Mapping[str, Review]:
    """The answer for each network; those that were not answered in time are missing."""
    answers: dict[str, Review] = {}
    turn = asyncio.Semaphore(AT_ONCE)

    async def ask(network: str) -> None:
        async with turn:
            answers[network] = await _ask(kube, user, namespace, network)

    async with asyncio.TaskGroup() as tasks:
        for network in networks:
            tasks.create_task(ask(network), name=f"access to {network}")
    return answers


async def _ask(kube: Kube, user: JsonObject, namespace: str, network: str) -> Review:
    try:
        answer = await kube.review(ACCESS_REVIEW, _question(user, namespace, network))
    except ReconcileError:
        return Review.FAILED
    allowed = member_object(answer, "status").get("allowed") is True
    return Review.ALLOWED if allowed else Review.DENIED


def _question(user: JsonObject, namespace: str, network: str) -> JsonObject:
    attributes: JsonObject = {
        "verb": "use",
        "group": NETWORK.group,
        "version": NETWORK.version,
        "resource": NETWORK.plural,
        "name": network,
        "namespace": namespace,
    }
    spec: JsonObject = {
        "user": member_text(user, "username"),
        "uid": member_text(user, "uid"),
        "groups": user.get("groups"),
        "extra": user.get("extra"),
        "resourceAttributes": attributes,
    }
    return {
        "apiVersion": ACCESS_REVIEW.api_version,
        "kind": ACCESS_REVIEW.kind,
        "metadata": {},
        "spec": spec,
    }
