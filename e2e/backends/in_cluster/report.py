"""Which objects and rights of `deploy/` a session used, and which it did not.

An object counts as used where a plane holds it, a right where an operator's request needed it. A
whole run must use everything but what `OBJECTS_OF_OTHERS` and `RIGHTS_OF_TROUBLE` name, each with
its reason. The core of a run proves less, and its report is only told. Pure but for the reading.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.backends.in_cluster.pods import Pods
from e2e.backends.real.auditing import Entry
from e2e.backends.real.judging import derive_history
from e2e.backends.rights import granted_rights, used_rights
from e2e.kustomization.documents import parse_objects
from e2e.manifests import DEPLOY, FILE, find_overlays, read_kustomization, render
from e2e.objects import name_of, namespace_of, text_at
from e2e.planes.client import ApiError
from e2e.planes.stack import RealPlanes

# What only others read: no plane here serves its kinds or has anybody to read it. That it renders,
# and that it is right, is for `tests/test_monitoring.py` and `e2e/monitoring` to say.
OBJECTS_OF_OTHERS: Final = {
    "ConfigMap compute-system/compute-dashboard": "Grafana's sidecar reads it",
    "PrometheusRule compute-system/compute-alerts": "the Prometheus operator reads it",
    "Service compute-system/compute-metrics": "what Prometheus finds our pods by",
    "ServiceMonitor compute-system/compute-metrics": "the Prometheus operator reads it",
}
# What no scenario on pods brings about. Each is used by a contract test under the same roles, and
# `python -m e2e.rights` fails when it is used by nobody at all.
RIGHTS_OF_TROUBLE: Final = {
    "compute-management-operator (home): create events.core": (
        "told when the mass-delete guard holds: a crowd must vanish while nobody looks"
    ),
    "compute-management-operator (home): patch events.core": (
        "counts the same event a second time"
    ),
}

# Folders whose objects are templates: every cell has its own copy under its own name.
TEMPLATES: Final = frozenset({"hub/cells/example", "milo/cells/example"})


@dataclass(frozen=True, slots=True, order=True)
class Shipped:
    """One object of `deploy/`, however many overlays bring it."""

    kind: str
    namespace: str
    name: str


def shipped_objects() -> dict[Shipped, JsonObject]:
    """Everything that any overlay renders, but templates."""
    found: dict[Shipped, JsonObject] = {}
    for overlay in find_overlays():
        if overlay.relative_to(DEPLOY).as_posix() not in TEMPLATES:
            found |= {_key(one): one for one in render(overlay)}
    return found | {_key(one): one for one in _of_components()}


def _of_components() -> Iterator[JsonObject]:
    """Objects that parts of overlays bring; a part cannot be rendered by itself."""
    for path in sorted((DEPLOY / "components").rglob(FILE)):
        for name in read_kustomization(path.parent).resources:
            if (path.parent / name).is_file():
                yield from parse_objects((path.parent / name).read_text("utf-8"))


def _key(document: JsonObject) -> Shipped:
    return Shipped(text_at(document, "kind"), namespace_of(document), name_of(document))


async def find_absent(planes: RealPlanes, applied: Container[str]) -> list[str]:
    """Objects that are on no plane; `applied` are paths of what was on one and went again."""
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


def describe_object(one: Shipped) -> str:
    return f"{one.kind} {one.namespace}/{one.name}".replace(" /", " ")


def find_unused_rights(entries: Iterable[Entry], cells: Iterable[str]) -> list[str]:
    """Rights of the operators' roles that no request needed."""
    used = used_rights(derive_history([], [], entries), cells)
    return sorted(str(right) for right in granted_rights() - used)


def describe_pods(operator: str, pods: Pods) -> list[str]:
    """How long each took to be ready, to the second, and what it weighs now."""
    return [
        f"{operator}: {pod.name} ready {pod.took.total_seconds():.0f} s after its start, "
        f"{pods.rss(pod) / 1_000_000:.0f} MB"
        for pod in pods.running()
        if pod.took is not None
    ]


@dataclass(frozen=True, slots=True)
class Use:
    """What a session did not use."""

    objects: tuple[str, ...]
    rights: tuple[str, ...]

    def describe(self) -> list[str]:
        """Lines of the report; what is expected to be unused has its reason beside it."""
        reasons = {**OBJECTS_OF_OTHERS, **RIGHTS_OF_TROUBLE}
        return [
            f"{len(self.objects)} objects of deploy/ are on no plane",
            *(_line(one, reasons) for one in self.objects),
            f"{len(self.rights)} rights of the operators were not needed",
            *(_line(one, reasons) for one in self.rights),
        ]

    def find_faults(self) -> list[str]:
        """What a whole run must not leave so."""
        pairs = ((self.objects, OBJECTS_OF_OTHERS), (self.rights, RIGHTS_OF_TROUBLE))
        return [
            f"deploy/: no scenario exercised {one}"
            for found, excused in pairs
            for one in found
            if one not in excused
        ]


def _line(one: str, reasons: Mapping[str, str]) -> str:
    return f"  {one} ({reasons[one]})" if one in reasons else f"  {one}"
