"""Prepares planes as the Go operators leave them, for the how-to about the switch.

Our operators are stopped and their Deployments deleted, the recorded objects are loaded into a
project, and a Go operator's Deployment is created for the page to stop. Without it the page would
be tested on an installation of our own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.demo.backend import LATER, MERGE, PROJECT_NAMESPACES, RETRY, TRIES, DemoError
from e2e.demo.environment import SYSTEM, EmbeddedEnvironment
from e2e.world.kinds import NAMESPACE, Kind, kind_of
from e2e.world.objects import text_at, uid_of
from e2e.world.port import DFW, HOME, HUB, MANAGEMENT, ROOT, PlaneRequest, PlaneResponse
from e2e.world.recorded.loading import Check, RecordingLoader, RecordingTargets
from e2e.world.recorded.reading import PROJECT_PLANE, RUNNING, read_recording
from e2e.world.recorded.renaming import Renaming

PROJECT_NAMESPACE: Final = PROJECT_NAMESPACES[1]
LIMIT: Final = 11
DEPLOYMENTS: Final = Kind("apps", "v1", "deployments", "Deployment")
WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    is_namespaced=False,
)
OUR_WEBHOOK: Final = "compute-validating"
# Plane and Deployment of each of the demo's operators, and its ConfigMap.
OPERATORS: Final = {
    "compute-management-operator": (HOME, MANAGEMENT, "compute-management-config"),
    "compute-cell-operator": (DFW.name, DFW.name, "compute-cell-config"),
}


@dataclass(frozen=True, slots=True)
class AdminClient:
    """An administrator's requests to one plane (`e2e.world.recorded.loading.PlaneAccess`)."""

    environment: EmbeddedEnvironment
    plane: str
    namespace: str = ""

    async def get(self, kind: Kind, name: str) -> JsonObject:
        return await self._send(PlaneRequest("GET", kind.path(self.namespace, name)))

    async def create(self, document: JsonObject) -> JsonObject:
        kind = kind_of(text_at(document, "apiVersion"), text_at(document, "kind"))
        namespace = text_at(document, "metadata", "namespace") or self.namespace
        return await self.post(kind, document, namespace)

    async def post(self, kind: Kind, document: JsonObject, namespace: str = "") -> JsonObject:
        return await self._send(PlaneRequest("POST", kind.path(namespace), document))

    async def patch(
        self, kind: Kind, name: str, change: JsonObject, *, subresource: str = ""
    ) -> JsonObject:
        target = kind.path(self.namespace, name, subresource)
        return await self._send(PlaneRequest("PATCH", target, change, MERGE))

    async def delete(self, kind: Kind, name: str) -> None:
        reply = await self.environment.send(
            self.plane, "admin", PlaneRequest("DELETE", kind.path(self.namespace, name))
        )
        if reply.status >= 400 and reply.status != 404:
            raise AssertionError(f"deleting {name} on {self.plane}: {reply.status}")

    async def _send(self, call: PlaneRequest) -> JsonObject:
        reply = PlaneResponse(0, {})
        for _ in range(TRIES):
            reply = await self.environment.send(self.plane, "admin", call)
            if reply.status not in LATER:
                break
            await asyncio.sleep(RETRY.total_seconds())
        if reply.status >= 400:
            message = text_at(reply.body, "message")
            raise AssertionError(f"{call.method} {call.target} on {self.plane}: {message}")
        return reply.body


async def install_predecessor(environment: EmbeddedEnvironment) -> None:
    """Replaces our installation by the recorded one."""
    for deployment, (plane, operator, _) in OPERATORS.items():
        await environment.halt(operator)
        client = AdminClient(environment, plane, SYSTEM)
        await client.delete(DEPLOYMENTS, deployment)
        await client.post(DEPLOYMENTS, _deployment(), SYSTEM)
    await environment.set_grant(PROJECT_NAMESPACE.project, LIMIT)
    root = AdminClient(environment, ROOT)
    reviewed = await root.get(WEBHOOKS, OUR_WEBHOOK)
    await root.delete(WEBHOOKS, OUR_WEBHOOK)
    await _load(environment)
    await root.post(WEBHOOKS, _anew(reviewed, OUR_WEBHOOK))
    # Their webhook is served by the operator that the page stops.
    await root.post(WEBHOOKS, _anew(reviewed, "validating-webhook-configuration"))


async def _load(environment: EmbeddedEnvironment) -> None:
    project = AdminClient(environment, PROJECT_NAMESPACE.project, PROJECT_NAMESPACE.namespace)
    namespace = await project.get(NAMESPACE, PROJECT_NAMESPACE.namespace)
    recording = read_recording(RUNNING)
    renaming = Renaming(PROJECT_NAMESPACE.project, PROJECT_NAMESPACE.namespace, DFW.city)
    (recorded,) = recording.of(PROJECT_PLANE, NAMESPACE)
    renaming.learn(recorded, namespace)
    own = f"ns-{uid_of(namespace)}"
    places = RecordingTargets(
        project, AdminClient(environment, HUB, own), AdminClient(environment, DFW.name, own)
    )
    loader = RecordingLoader(recording, places, renaming, _eventually)
    await loader.load_workloads()
    await loader.load()


async def _eventually(check: Check) -> None:
    last: AssertionError | None = None
    for _ in range(TRIES * 4):
        try:
            return await check()
        except AssertionError as failure:
            last = failure
        await asyncio.sleep(RETRY.total_seconds())
    raise DemoError(f"loading recorded objects: {last}")


def _anew(document: JsonObject, name: str) -> JsonObject:
    return {**document, "metadata": {"name": name}}


def _deployment() -> JsonObject:
    """The parts of their Deployment that a page needs to stop it."""
    labels: JsonObject = {"control-plane": "compute"}
    container: JsonObject = {"name": "manager", "image": "registry.example.net/compute:former"}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.name,
        "metadata": {"name": "compute-manager", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
