"""Workloads with two referenced objects in the chain, and Karmada's own delivery of dependencies.

The second is measured without our operators: a Deployment that names a ConfigMap and a Secret is
propagated with `propagateDeps`, and takes what Karmada takes at its rates.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import yaml

from compute_api_types.wire import JsonObject, JsonValue
from e2e.backends.real.environment import CELLS, RealEnvironment
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.deploy.manifests import DEPLOY
from e2e.world.documents import a_namespace, a_workload
from e2e.world.kinds import CONFIG_MAP, POLICY, SECRET, Kind
from e2e.world.objects import object_at, objects_at
from e2e.world.port import DFW, HUB

COMPONENT: Final = DEPLOY / "components/referenced-data"
ON: Final[JsonObject] = {"referencedData": "on"}
OWN_NAMESPACE: Final = "bench-dependencies"
DEPLOYMENT: Final = Kind("apps", "v1", "deployments", "Deployment")
POLL: Final = timedelta(milliseconds=10)
PATIENCE: Final = timedelta(minutes=1)


async def grant_data(environment: RealEnvironment) -> None:
    """The components of referenced data, on the root, the hub and the cells."""
    planes = environment.planes
    async with planes.milo.client() as root, planes.plane(HUB).client() as hub:
        for client, folder in ((root, "project"), (hub, "hub")):
            for document in _documents(folder):
                await client.apply(document)
    for cell in CELLS:
        async with planes.plane(cell.name).client() as client:
            for document in _documents("cell"):
                await client.apply(document)


def _documents(folder: str) -> Iterator[JsonObject]:
    for path in sorted((COMPONENT / folder).glob("*.yaml")):
        if path.name != "kustomization.yaml":
            yield from yaml.safe_load_all(path.read_text("utf-8"))


def two_objects(name: str, namespace: str) -> tuple[JsonObject, JsonObject]:
    """A ConfigMap and a Secret of the name."""
    metadata: JsonObject = {"name": name, "namespace": namespace}
    config: JsonObject = {"k": "v"}
    return (
        {"apiVersion": "v1", "kind": CONFIG_MAP.name, "metadata": metadata, "data": config},
        {"apiVersion": "v1", "kind": SECRET.name, "metadata": metadata, "stringData": {"k": "v"}},
    )


def a_workload_with_data(name: str) -> JsonObject:
    """It names the two objects of its own name."""
    workload = a_workload(name)
    template = object_at(workload, "spec", "template")
    (container,) = objects_at(template, "spec", "runtime", "sandbox", "containers")
    container["envFrom"] = _both(name)
    return workload


def _both(name: str) -> list[JsonValue]:
    return [{"configMapRef": {"name": name}}, {"secretRef": {"name": name}}]


# --- Karmada alone --------------------------------------------------------------------------------


async def prepare_own(hub: PlaneClient) -> None:
    """A namespace and a policy for Deployments with their dependencies."""
    await hub.apply(a_namespace(OWN_NAMESPACE))
    await hub.apply(
        {
            "apiVersion": POLICY.api_version,
            "kind": POLICY.name,
            "metadata": {"name": "dependencies", "namespace": OWN_NAMESPACE},
            "spec": {
                "propagateDeps": True,
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": DEPLOYMENT.name}],
                "placement": {"clusterAffinity": {"clusterNames": [DFW.name]}},
            },
        }
    )


async def time_own(environment: RealEnvironment, hub: PlaneClient, name: str) -> float:
    """Seconds from the create of a Deployment to both of its dependencies in the cell."""
    for document in two_objects(name, OWN_NAMESPACE):
        await hub.create(document)
    async with environment.planes.plane(DFW.name).client() as cell:
        begun = time.monotonic()
        await hub.create(_a_deployment(name))

        async def are_there() -> bool:
            found = [
                await cell.find(kind.path(OWN_NAMESPACE, name)) for kind in (CONFIG_MAP, SECRET)
            ]
            if None not in found:
                return True
            await asyncio.sleep(POLL.total_seconds())
            return False

        check = environment.planes.check
        await until(f"dependencies of {name}", are_there, check=check, patience=PATIENCE)
        taken = time.monotonic() - begun
    for kind in (DEPLOYMENT, CONFIG_MAP, SECRET):
        await hub.delete(kind.path(OWN_NAMESPACE, name))
    return taken


def _a_deployment(name: str) -> JsonObject:
    labelled: JsonObject = {"app": name}
    container: JsonObject = {"name": "web", "image": "registry.example/web", "envFrom": _both(name)}
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.name,
        "metadata": {"name": name, "namespace": OWN_NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labelled},
            "template": {"metadata": {"labels": labelled}, "spec": {"containers": [container]}},
        },
    }
