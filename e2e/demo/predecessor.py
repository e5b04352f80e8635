"""The planes of the how-tos as the Go operators leave them: their objects, and nothing of ours.

Before a page about the switch is followed, our operators are stopped and their Deployments taken
away; the recorded objects are put into a project, and what stops a Go operator has something to
stop. Without it the page would be tried on an installation of our own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.backends.port import DFW, HOME, HUB, MANAGEMENT, ROOT, Call, Reply
from e2e.demo.scene import LATER, MERGE, PLACES, RETRY, TRIES, DemoError
from e2e.demo.stage import SYSTEM, Stage
from e2e.kinds import NAMESPACE, Kind, kind_of
from e2e.objects import text_at, uid_of
from e2e.recorded.loading import Check, Loader, Places
from e2e.recorded.reading import PROJECT_PLANE, RUNNING, read_recording
from e2e.recorded.renaming import Renaming

PLACE: Final = PLACES[1]
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
# Where a Deployment of ours runs which operator of the stage, and the ConfigMap it reads.
OPERATORS: Final = {
    "compute-management-operator": (HOME, MANAGEMENT, "compute-management-config"),
    "compute-cell-operator": (DFW.name, DFW.name, "compute-cell-config"),
}


@dataclass(frozen=True, slots=True)
class AdminHands:
    """An administrator at one plane (`e2e.recorded.loading.Reached`)."""

    stage: Stage
    plane: str
    namespace: str = ""

    async def get(self, kind: Kind, name: str) -> JsonObject:
        return await self._send(Call("GET", kind.path(self.namespace, name)))

    async def create(self, document: JsonObject) -> JsonObject:
        kind = kind_of(text_at(document, "apiVersion"), text_at(document, "kind"))
        namespace = text_at(document, "metadata", "namespace") or self.namespace
        return await self.post(kind, document, namespace)

    async def post(self, kind: Kind, document: JsonObject, namespace: str = "") -> JsonObject:
        return await self._send(Call("POST", kind.path(namespace), document))

    async def patch(
        self, kind: Kind, name: str, change: JsonObject, *, subresource: str = ""
    ) -> JsonObject:
        target = kind.path(self.namespace, name, subresource)
        return await self._send(Call("PATCH", target, change, MERGE))

    async def delete(self, kind: Kind, name: str) -> None:
        reply = await self.stage.send(
            self.plane, "admin", Call("DELETE", kind.path(self.namespace, name))
        )
        if reply.status >= 400 and reply.status != 404:
            raise AssertionError(f"deleting {name} on {self.plane}: {reply.status}")

    async def _send(self, call: Call) -> JsonObject:
        reply = Reply(0, {})
        for _ in range(TRIES):
            reply = await self.stage.send(self.plane, "admin", call)
            if reply.status not in LATER:
                break
            await asyncio.sleep(RETRY.total_seconds())
        if reply.status >= 400:
            said = text_at(reply.body, "message")
            raise AssertionError(f"{call.method} {call.target} on {self.plane}: {said}")
        return reply.body


async def install_predecessor(stage: Stage) -> None:
    """The recorded installation in the place of ours."""
    for deployment, (plane, operator, _) in OPERATORS.items():
        await stage.halt(operator)
        hands = AdminHands(stage, plane, SYSTEM)
        await hands.delete(DEPLOYMENTS, deployment)
        await hands.post(DEPLOYMENTS, _deployment(), SYSTEM)
    await stage.set_grant(PLACE.project, LIMIT)
    root = AdminHands(stage, ROOT)
    reviewed = await root.get(WEBHOOKS, OUR_WEBHOOK)
    await root.delete(WEBHOOKS, OUR_WEBHOOK)
    await _load(stage)
    await root.post(WEBHOOKS, _anew(reviewed, OUR_WEBHOOK))
    # Theirs answers from the operator that the page stops.
    await root.post(WEBHOOKS, _anew(reviewed, "validating-webhook-configuration"))


async def _load(stage: Stage) -> None:
    project = AdminHands(stage, PLACE.project, PLACE.namespace)
    namespace = await project.get(NAMESPACE, PLACE.namespace)
    recording = read_recording(RUNNING)
    renaming = Renaming(PLACE.project, PLACE.namespace, DFW.city)
    (recorded,) = recording.of(PROJECT_PLANE, NAMESPACE)
    renaming.learn(recorded, namespace)
    own = f"ns-{uid_of(namespace)}"
    places = Places(project, AdminHands(stage, HUB, own), AdminHands(stage, DFW.name, own))
    loader = Loader(recording, places, renaming, _eventually)
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


def _anew(found: JsonObject, name: str) -> JsonObject:
    return {**found, "metadata": {"name": name}}


def _deployment() -> JsonObject:
    """As much of their Deployment as a page can stop."""
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
