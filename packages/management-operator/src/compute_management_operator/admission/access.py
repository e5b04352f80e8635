"""SubjectAccessReviews on a project plane: may the requester use a network (api.md 12.3, rule 44).

A review carries the groups, uid and extra of the request: in the operator's own name it would grant
the operator's rights. A review that fails is `FAILED`, never allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from compute_api_types.validation import Review
from compute_management_operator.planes import NETWORK
from compute_operator_kit.client.interface import KubeClient
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.process.metrics_server import ACCESS_REVIEW

AT_ONCE: Final = 8  # one object may name hundreds of networks


async def review_networks(
    kube: KubeClient, user: JsonObject, namespace: str, networks: Iterable[str]
) -> Mapping[str, Review]:
    """The result for each network."""
    results: dict[str, Review] = {}
    turn = asyncio.Semaphore(AT_ONCE)

    async def review(network: str) -> None:
        async with turn:
            results[network] = await _review(kube, user, namespace, network)

    async with asyncio.TaskGroup() as tasks:
        for network in networks:
            tasks.create_task(review(network), name=f"access to {network}")
    return results


async def _review(kube: KubeClient, user: JsonObject, namespace: str, network: str) -> Review:
    try:
        reviewed = await kube.review(ACCESS_REVIEW, _review_body(user, namespace, network))
    except ReconcileError:
        return Review.FAILED
    allowed = member_object(reviewed, "status").get("allowed") is True
    return Review.ALLOWED if allowed else Review.DENIED


def _review_body(user: JsonObject, namespace: str, network: str) -> JsonObject:
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
