"""SubjectAccessReviews on a project plane: may the requester use a network (api.md 12.3, rule 44),
read a ConfigMap or a Secret (rule 79).

A review carries the groups, uid and extra of the request: in the operator's own name it would grant
the operator's rights. A review that fails is `FAILED`, never allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from compute_api_types.referenced_data.references import CONFIG_MAP, Reference
from compute_api_types.validation import Review
from compute_management_operator.planes import NETWORK
from compute_operator_kit.client.interface import KubeClient
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.process.metrics_server import ACCESS_REVIEW

AT_ONCE: Final = 8  # one object may name hundreds of networks
DATA_AT_ONCE: Final = 16  # referenced-data.md 7


async def review_networks(
    kube: KubeClient, user: JsonObject, namespace: str, networks: Iterable[str]
) -> Mapping[str, Review]:
    """The result for each network."""

    def attributes(network: str) -> JsonObject:
        return {
            "verb": "use",
            "group": NETWORK.group,
            "version": NETWORK.version,
            "resource": NETWORK.plural,
            "name": network,
            "namespace": namespace,
        }

    asked = {network: attributes(network) for network in networks}
    return await _review_all(kube, user, asked, at_once=AT_ONCE)


async def review_references(
    kube: KubeClient, user: JsonObject, namespace: str, references: Iterable[Reference]
) -> Mapping[str, Review]:
    """The result for each ConfigMap and Secret, by token."""

    def attributes(reference: Reference) -> JsonObject:
        return {
            "verb": "get",
            "group": "",
            "version": "v1",
            "resource": "configmaps" if reference.kind == CONFIG_MAP else "secrets",
            "name": reference.name,
            "namespace": namespace,
        }

    asked = {reference.token: attributes(reference) for reference in references}
    return await _review_all(kube, user, asked, at_once=DATA_AT_ONCE)


async def _review_all(
    kube: KubeClient, user: JsonObject, asked: Mapping[str, JsonObject], *, at_once: int
) -> Mapping[str, Review]:
    results: dict[str, Review] = {}
    turn = asyncio.Semaphore(at_once)

    async def review(name: str, attributes: JsonObject) -> None:
        async with turn:
            results[name] = await _review(kube, user, attributes)

    async with asyncio.TaskGroup() as tasks:
        for name, attributes in asked.items():
            tasks.create_task(review(name, attributes), name=f"access to {name}")
    return results


async def _review(kube: KubeClient, user: JsonObject, attributes: JsonObject) -> Review:
    try:
        reviewed = await kube.review(ACCESS_REVIEW, _review_body(user, attributes))
    except ReconcileError:
        return Review.FAILED
    allowed = member_object(reviewed, "status").get("allowed") is True
    return Review.ALLOWED if allowed else Review.DENIED


def _review_body(user: JsonObject, attributes: JsonObject) -> JsonObject:
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
