"""Client of the cluster: requests of the official `kubernetes.aio` client, with plain documents.

Documents stay dictionaries: the generated models drop fields they do not know, and a Pod parsed
into models costs more than the request. Answers are bounded, and every failure is one of the kit's
error classes, so that an unknown outcome is never taken for a refusal.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol, cast

import aiohttp
from kubernetes.aio import client as kubernetes_client

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from compute_operator_kit.core.errors import (
    ConflictError,
    OutcomeUnknownError,
    RejectedError,
    ThrottledError,
    UnavailableError,
)
from compute_operator_kit.core.metrics import WRITES, MetricsPort
from compute_pod_provider.instance_facts import objects_at, text_at

GROUP_PATH: Final = "/apis/compute.datumapis.com/v1alpha"
POLICY_PATH: Final = "/apis/networking.k8s.io/v1"
MERGE_PATCH: Final = "application/merge-patch+json"
REQUEST_TIMEOUT: Final = timedelta(seconds=10)
LARGEST_ANSWER: Final = 8 * 1024 * 1024  # an object has at most 1.5 MiB in etcd
MOST_EVENTS: Final = 50
AT_ONCE: Final = 16  # requests in flight


@dataclass(frozen=True, slots=True)
class Answer:
    """Status code and document of a response."""

    code: int
    document: JsonObject

    @property
    def message(self) -> str:
        return text_at(self.document, "message")

    @property
    def reason(self) -> str:
        return text_at(self.document, "reason")


class RawResponse(Protocol):
    """Of the official client, which has no types here."""

    status: int
    response: aiohttp.ClientResponse


class RawApi(Protocol):
    """The part of `kubernetes.aio.client.ApiClient` that is used."""

    user_agent: str

    async def param_serialize(
        self,
        method: str,
        resource_path: str,
        *,
        query_params: list[tuple[str, str]],
        header_params: dict[str, str],
        body: JsonObject | None,
        auth_settings: list[str],
    ) -> tuple[object, ...]: ...

    async def call_api(self, *request: object, _request_timeout: float) -> RawResponse: ...

    async def close(self) -> None: ...


class ClusterClient:
    """The requests of the provider; `role H` has exactly their verbs."""

    def __init__(
        self,
        configuration: kubernetes_client.Configuration,
        metrics: MetricsPort,
        user_agent: str,
    ) -> None:
        # Typed by use: the library has no types here.
        self._api = cast("RawApi", kubernetes_client.ApiClient(configuration))
        self._api.user_agent = user_agent
        self._metrics = metrics
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def close(self) -> None:
        await self._api.close()

    # reads ---------------------------------------------------------------------------------------

    async def is_served(self) -> bool:
        """Whether the cluster serves Instances."""
        answer = await self._send("GET", GROUP_PATH)
        listed = objects_at(answer.document, "resources")
        return answer.code == 200 and any(text_at(one, "name") == "instances" for one in listed)

    async def read_instance(self, namespace: str, name: str) -> JsonObject | None:
        return await self._read(f"{GROUP_PATH}/namespaces/{namespace}/instances/{name}")

    async def read_pod(self, namespace: str, name: str) -> JsonObject | None:
        return await self._read(f"/api/v1/namespaces/{namespace}/pods/{name}")

    async def read_network_policy(self, namespace: str, name: str) -> JsonObject | None:
        return await self._read(f"{POLICY_PATH}/namespaces/{namespace}/networkpolicies/{name}")

    async def list_pod_events(self, namespace: str, uid: str) -> tuple[JsonObject, ...]:
        """The Events of one Pod, at most the first of them."""
        query = [("fieldSelector", f"involvedObject.uid={uid}"), ("limit", str(MOST_EVENTS))]
        answer = await self._send("GET", f"/api/v1/namespaces/{namespace}/events", query=query)
        self._check(answer)
        return objects_at(answer.document, "items")

    async def _read(self, path: str) -> JsonObject | None:
        answer = await self._send("GET", path)
        if answer.code == 404:
            return None
        self._check(answer)
        return answer.document

    # writes --------------------------------------------------------------------------------------

    async def create_pod(self, namespace: str, document: JsonObject) -> Answer:
        """The answer as it is: its refusals are verdicts, and `_check` is for the caller."""
        answer = await self._send(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods",
            query=[("fieldManager", labels.POD_PROVIDER_MANAGER)],
            body=document,
        )
        self._count("Pod", "create")
        return answer

    async def create_network_policy(self, namespace: str, document: JsonObject) -> Answer:
        """The answer as it is, like that of a Pod."""
        answer = await self._send(
            "POST",
            f"{POLICY_PATH}/namespaces/{namespace}/networkpolicies",
            query=[("fieldManager", labels.POD_PROVIDER_MANAGER)],
            body=document,
        )
        self._count("NetworkPolicy", "create")
        return answer

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Deletes the Pod of that UID with its own grace period; gone or replaced is no error."""
        await self._delete(f"/api/v1/namespaces/{namespace}/pods/{name}", uid)
        self._count("Pod", "delete")

    async def delete_network_policy(self, namespace: str, name: str, uid: str) -> None:
        await self._delete(f"{POLICY_PATH}/namespaces/{namespace}/networkpolicies/{name}", uid)
        self._count("NetworkPolicy", "delete")

    async def _delete(self, path: str, uid: str) -> None:
        options: JsonObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
        }
        answer = await self._send("DELETE", path, body=options)
        if answer.code not in {404, 409}:
            self._check(answer)

    async def patch_status(self, namespace: str, name: str, body: JsonObject) -> JsonObject | None:
        path = f"{GROUP_PATH}/namespaces/{namespace}/instances/{name}/status"
        return await self._patch(path, body)

    async def patch_instance(
        self, namespace: str, name: str, body: JsonObject
    ) -> JsonObject | None:
        return await self._patch(f"{GROUP_PATH}/namespaces/{namespace}/instances/{name}", body)

    async def _patch(self, path: str, body: JsonObject) -> JsonObject | None:
        """The patched object; None where it is gone. `ConflictError` for another version."""
        answer = await self._send(
            "PATCH",
            path,
            query=[("fieldManager", labels.POD_PROVIDER_MANAGER)],
            body=body,
            content_type=MERGE_PATCH,
        )
        self._count("Instance", "patch")
        if answer.code == 404:
            return None
        self._check(answer)
        return answer.document

    # one request ---------------------------------------------------------------------------------

    def check(self, answer: Answer) -> None:
        """Raises the error of an answer that is no success."""
        self._check(answer)

    def _check(self, answer: Answer) -> None:
        code = answer.code
        if code < 300:
            return
        text = f"{code} {answer.reason}".strip()
        if code == 409:
            raise ConflictError("Conflict", f"writing: {text}")
        if code == 429:
            raise ThrottledError(
                "Throttled", f"asking the cluster: {text}", retry_after=timedelta(seconds=1)
            )
        if code >= 500 or code == 401:
            raise UnavailableError("Unavailable", f"asking the cluster: {text}")
        raise RejectedError("Rejected", f"asking the cluster: {text}")

    def _count(self, kind: str, verb: str) -> None:
        self._metrics.count(WRITES, plane="home", kind=kind, verb=verb, controller="pods")

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Mapping[str, JsonValue] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        async with self._slots:
            try:
                return await self._exchange(method, path, query or [], body, content_type)
            except (aiohttp.ClientError, TimeoutError, OSError) as cause:
                text = f"asking the cluster: {type(cause).__name__}"
                if method == "GET":
                    raise UnavailableError("Unavailable", text) from cause
                raise OutcomeUnknownError("Unavailable", text) from cause

    async def _exchange(
        self,
        method: str,
        path: str,
        query: list[tuple[str, str]],
        body: Mapping[str, JsonValue] | None,
        content_type: str,
    ) -> Answer:
        request = await self._api.param_serialize(
            method,
            path,
            query_params=query,
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=None if body is None else dict(body),
            auth_settings=["BearerToken"],
        )
        response = await self._api.call_api(
            *request, _request_timeout=REQUEST_TIMEOUT.total_seconds()
        )
        content = await response.response.content.read(LARGEST_ANSWER)
        chunks = [content]
        total = len(content)
        while content and total < LARGEST_ANSWER:
            content = await response.response.content.read(LARGEST_ANSWER - total)
            chunks.append(content)
            total += len(content)
        return Answer(response.status, _parse(b"".join(chunks)))


def _parse(content: bytes) -> JsonObject:
    try:
        document: JsonValue = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
