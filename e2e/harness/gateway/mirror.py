"""Copies the root's CRDs, webhooks and admission policies into every project.

In Milo they are the same objects (neighbours.md 2.2); here each project's API server has copies
that follow the root while the gateway runs. Only copies made here are deleted.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from datetime import timedelta
from typing import Final

import aiohttp

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.reflector import Delta, list_and_watch
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at

MANAGER: Final = "milo-mirror"
RETRY: Final = timedelta(milliseconds=500)
_REGISTRATION: Final = "admissionregistration.k8s.io"
MIRRORED: Final = (
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        is_namespaced=False,
    ),
    *(
        Resource(_REGISTRATION, "v1", f"{kind.lower()}s", kind, is_namespaced=False)
        for kind in (
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "ValidatingAdmissionPolicyBinding",
        )
    ),
    Resource(
        _REGISTRATION,
        "v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        is_namespaced=False,
    ),
)
_OWN_METADATA: Final = ("name", "labels", "annotations")
_log: Final = logging.getLogger(__name__)


def derive_copy(document: JsonObject) -> JsonObject:
    """The object for a project: its written fields, without those of the server that stored it."""
    metadata: JsonObject = {
        name: value
        for name, value in object_at(document, "metadata").items()
        if name in _OWN_METADATA
    }
    rest: dict[str, JsonValue] = {
        name: value for name, value in document.items() if name not in {"metadata", "status"}
    }
    return {**rest, "metadata": metadata}


def is_our_copy(document: JsonObject | None) -> bool:
    entries = objects_at(document, "metadata", "managedFields")
    return any(string_at(entry, "manager") == MANAGER for entry in entries)


async def copy_admission(root: Client, project: Client) -> None:
    """Copies webhooks and policies once; a project must not accept requests before they are
    there.
    """
    for resource in MIRRORED:
        if resource.group == _REGISTRATION:
            for document in (await root.list(resource)).items:
                await project.apply(resource, derive_copy(document))


async def mirror_into(root: Client, name: str, project: Client) -> None:
    """Keeps a project equal to the root until it is cancelled."""
    async with asyncio.TaskGroup() as group:
        for resource in MIRRORED:
            group.create_task(_mirror_kind(root, name, project, resource))


async def _mirror_kind(root: Client, name: str, project: Client, resource: Resource) -> None:
    async with aclosing(list_and_watch(root, resource)) as changes:
        async for seen in changes:
            await _apply_change(name, project, resource, seen)


async def _apply_change(name: str, project: Client, resource: Resource, seen: Delta) -> None:
    """Applies a change to a project; repeats until it succeeds or is refused for good."""
    while True:
        try:
            return await _carry_over(project, resource, seen)
        except (OSError, aiohttp.ClientError) as cause:
            _log.info("Waiting for project %s: %s", name, cause)
        except ApiError as refused:
            _log.warning("Mirroring %s into project %s: %s", resource.kind, name, refused)
            if refused.status < 500:
                return None
        await asyncio.sleep(RETRY.total_seconds())


async def _carry_over(project: Client, resource: Resource, seen: Delta) -> None:
    if not seen.is_deleted:
        await project.apply(resource, derive_copy(seen.object))
        return
    name = string_at(seen.object, "metadata", "name")
    if is_our_copy(await project.get(resource, name)):
        await project.delete(resource, name)
