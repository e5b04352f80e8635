"""Reports which objects and rights of `deploy/` a session used.

An object is used if a plane holds it, a right if a request of an operator needed it. A complete run
must use everything except the entries of `OBJECTS_OF_OTHERS` and `RIGHTS_OF_TROUBLE`, which have
their reasons; else a right would ship that no code needs. Shorter runs only print the report. Pure
except for reading.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.backends.pods.pods import Pods
from e2e.backends.real.auditing import AuditEntry
from e2e.backends.real.oracles import derive_history
from e2e.harness.access.client import ApiError
from e2e.harness.deploy.manifests import load_overlay
from e2e.harness.deploy.overlay_targets import COMPONENTS, OVERLAYS
from e2e.harness.deploy.rights import granted_rights, used_rights
from e2e.harness.stack.stack import RealPlanes
from e2e.world.components import load_component
from e2e.world.objects import name_of, namespace_of, text_at

# Objects of kinds that no plane here serves. `tests/test_monitoring.py` and
# `e2e/deploy_checks/monitoring` check them.
OBJECTS_OF_OTHERS: Final = {
    "ConfigMap compute-system/compute-dashboard": "Grafana's sidecar reads it",
    "PrometheusRule compute-system/compute-alerts": "the Prometheus operator reads it",
    "Service compute-system/compute-metrics": "what Prometheus finds our pods by",
    "ServiceMonitor compute-system/compute-metrics": "the Prometheus operator reads it",
}
# Rights that no scenario on pods needs. Each is used by a contract test under the same roles;
# `python -m e2e.harness.deploy.rights_report` fails for a right that no test uses.
RIGHTS_OF_TROUBLE: Final = {
    "compute-management-operator (home): create events.core": (
        "recorded by the mass-delete guard: many objects must vanish while no operator runs"
    ),
    "compute-management-operator (home): patch events.core": (
        "counts the same event a second time"
    ),
}

# Overlays of templates: every cell has its own copy under its own name.
TEMPLATES: Final = frozenset({"hub/cells/example", "milo/cells/example"})


@dataclass(frozen=True, slots=True, order=True)
class ShippedObject:
    """One object of `deploy/`, which may be in several overlays."""

    kind: str
    namespace: str
    name: str


def shipped_objects() -> dict[ShippedObject, JsonObject]:
    """Every object of overlays and components, except templates."""
    documents = [
        *(one for name in OVERLAYS if name not in TEMPLATES for one in load_overlay(name)),
        *(one for name in COMPONENTS for one in load_component(name)),
    ]
    return {_key(one): one for one in documents}


def _key(document: JsonObject) -> ShippedObject:
    return ShippedObject(text_at(document, "kind"), namespace_of(document), name_of(document))


async def find_absent(planes: RealPlanes, applied: Container[str]) -> list[str]:
    """Objects that are on no plane; `applied` are paths of objects that were there and deleted."""
    left = shipped_objects()
    for plane in planes.planes:
        async with plane.client() as client:
            for key, document in [*left.items()]:
                try:
                    path = await client.path_of(document)
                except ApiError:  # a kind that this plane does not serve
                    continue
                if path in applied or await client.find(path) is not None:
                    del left[key]
    return [describe_object(one) for one in sorted(left)]


def describe_object(one: ShippedObject) -> str:
    return f"{one.kind} {one.namespace}/{one.name}".replace(" /", " ")


def find_unused_rights(entries: Iterable[AuditEntry], cells: Iterable[str]) -> list[str]:
    """Rights of the operators' roles that no request needed."""
    used = used_rights(derive_history([], [], entries), cells)
    return sorted(str(right) for right in granted_rights() - used)


def describe_pods(operator: str, pods: Pods) -> list[str]:
    """Seconds to readiness and memory of each pod."""
    return [
        f"{operator}: {pod.name} ready {pod.took.total_seconds():.0f} s after its start, "
        f"{pods.rss(pod) / 1_000_000:.0f} MB"
        for pod in pods.running()
        if pod.took is not None
    ]


@dataclass(frozen=True, slots=True)
class UnusedReport:
    """Objects and rights that a session did not use."""

    objects: tuple[str, ...]
    rights: tuple[str, ...]

    def describe(self) -> list[str]:
        """Lines of the report, with the reason where it is expected."""
        reasons = {**OBJECTS_OF_OTHERS, **RIGHTS_OF_TROUBLE}
        return [
            f"{len(self.objects)} objects of deploy/ are on no plane",
            *(_line(one, reasons) for one in self.objects),
            f"{len(self.rights)} rights of the operators were not needed",
            *(_line(one, reasons) for one in self.rights),
        ]

    def find_faults(self) -> list[str]:
        """Unused objects and rights that are a fault of a complete run."""
        pairs = ((self.objects, OBJECTS_OF_OTHERS), (self.rights, RIGHTS_OF_TROUBLE))
        return [
            f"deploy/: no scenario exercised {one}"
            for unused, excused in pairs
            for one in unused
            if one not in excused
        ]


def _line(one: str, reasons: Mapping[str, str]) -> str:
    return f"  {one} ({reasons[one]})" if one in reasons else f"  {one}"
