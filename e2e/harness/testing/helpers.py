"""Helpers of tests and benchmarks on real planes: a CRD of their own, and process lookups.

The CRD (Widget) stands for a WorkloadDeployment: Karmada propagates it to a city and aggregates its
status, without a schema of ours. `Options(crds=(WIDGETS,))` installs it on every plane.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final, TypeVar

from compute_sim_planes.json_types import JsonObject
from e2e.harness.planes.topology import CITY_LABEL

_T = TypeVar("_T")
_LET_THE_FIRST_CELL_SPEAK: Final = """
function AggregateStatus(desiredObj, statusItems)
  desiredObj.metadata.managedFields = nil
  if statusItems ~= nil and statusItems[1] ~= nil then
    desiredObj.status = statusItems[1].status
  end
  return desiredObj
end
"""


def a_free_kind(group: str, kind: str) -> JsonObject:
    """A CRD without schema restrictions, with status."""
    plural = f"{kind.lower()}s"
    schema: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


WIDGETS: Final = a_free_kind("planes.test", "Widget")
# The kind of Karmada's contract (packages/sim-planes/tests/karmada_builders).
GADGETS: Final = a_free_kind("karmada-contract.example.com", "Gadget")
INTERPRETER: Final[JsonObject] = {
    "apiVersion": "config.karmada.io/v1alpha1",
    "kind": "ResourceInterpreterCustomization",
    "metadata": {"name": "widget"},
    "spec": {
        "target": {"apiVersion": "planes.test/v1", "kind": "Widget"},
        "customizations": {"statusAggregation": {"luaScript": _LET_THE_FIRST_CELL_SPEAK}},
    },
}


def a_widget(namespace: str, name: str, size: int = 1) -> JsonObject:
    return {
        "apiVersion": "planes.test/v1",
        "kind": "Widget",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"size": size},
    }


def a_widget_path(namespace: str, name: str) -> str:
    return f"/apis/planes.test/v1/namespaces/{namespace}/widgets/{name}"


def a_city_policy(namespace: str, city: str) -> JsonObject:
    """Propagates every Widget of the namespace to the cells of a city."""
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"namespace": namespace, "name": f"city-{city.lower()}"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "planes.test/v1", "kind": "Widget"}],
            "placement": {
                "clusterAffinity": {"labelSelector": {"matchLabels": {CITY_LABEL: city}}}
            },
        },
    }


QUOTA: Final = "quota.miloapis.com/v1alpha1"
_PROJECT: Final[JsonObject] = {"apiGroup": "resourcemanager.miloapis.com", "kind": "Project"}
_INSTANCE: Final[JsonObject] = {"apiGroup": "compute.datumapis.com", "kind": "Instance"}


def a_registration(name: str, resource_type: str) -> JsonObject:
    """Registers a resource type that projects are granted and Instances claim."""
    return {
        "apiVersion": QUOTA,
        "kind": "ResourceRegistration",
        "metadata": {"name": name},
        "spec": {
            "consumerType": _PROJECT,
            "type": "Entity",
            "resourceType": resource_type,
            "baseUnit": "thing",
            "displayUnit": "thing",
            "unitConversionFactor": 1,
            "claimingResources": [_INSTANCE],
        },
    }


def a_grant(project: str, name: str, resource_type: str, amount: int) -> JsonObject:
    return {
        "apiVersion": QUOTA,
        "kind": "ResourceGrant",
        "metadata": {"namespace": "milo-system", "name": name},
        "spec": {
            "consumerRef": {**_PROJECT, "name": project},
            "allowances": [{"resourceType": resource_type, "buckets": [{"amount": amount}]}],
        },
    }


def a_claim(project: str, name: str, resource_type: str) -> JsonObject:
    """A claim of one unit for an Instance."""
    return {
        "apiVersion": QUOTA,
        "kind": "ResourceClaim",
        "metadata": {"namespace": "default", "name": name},
        "spec": {
            "consumerRef": {**_PROJECT, "name": project},
            "resourceRef": {**_INSTANCE, "name": "web-0", "namespace": "default"},
            "requests": [{"resourceType": resource_type, "amount": 1}],
        },
    }


def is_running(pid: int) -> bool:
    """Whether the process runs; a zombie that was not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids_with(word: str) -> list[int]:
    """Running processes with the word in their command line."""
    pids: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (entry / "cmdline").read_bytes() and is_running(int(entry.name)):
                pids.append(int(entry.name))
        except OSError:  # it ended meanwhile
            continue
    return pids


def wait_for(happened: Callable[[], object], within: float = 30) -> None:
    """For tests without an event loop; others use `waiting.until`."""
    deadline = time.monotonic() + within
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not happen within {within} s")
        time.sleep(0.02)


def run_outside(step: Coroutine[object, object, _T]) -> _T:
    """Runs a coroutine between tests.

    In a standard event loop, even if the package's tests use one in virtual time: processes run in
    real time.
    """
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(step)
