"""Writes `docs/reference/configuration.md`: every key, flag and variable of both operators.

Keys, values and defaults come from the settings models, so that the page shows what the process
accepts. The purpose of each key is a sentence in this module; a key without its sentence, or a
sentence without its key, is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import UnionType
from typing import Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from compute_cell_operator.settings import CellSettings
from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.config.loader import (
    OVERRIDES,
    SERVER_CONFIG_FLAG,
    SERVER_CONFIG_VARIABLE,
)
from compute_operator_kit.config.settings import API_VERSION, Root
from compute_operator_kit.core.durations import format_duration
from compute_pod_provider.settings import PodProviderSettings
from tools.reference_pages import REFERENCE, draw_table, keep_page

PAGE: Final = REFERENCE / "configuration.md"
OPERATORS: Final[tuple[tuple[str, type[Root]], ...]] = (
    ("management", ManagementSettings),
    ("cell", CellSettings),
    ("pod-provider", PodProviderSettings),
)

TELLS: Final[Mapping[str, str]] = {
    "discovery.mode": "where projects come from; `single`: the home plane is the one project",
    "discovery.discoveryKubeconfigPath": "the Milo root; empty: the cluster the operator runs in",
    "discovery.projectKubeconfigPath": "base for project planes; empty: the one above",
    "cell.name": "the cell, by the name of its Karmada Cluster; required",
    "cell.cityCode": "the city it serves: evidence for wrong-city delivery",
    "federation.mode": "whether there is a hub; `none` is a single cluster, never a fallback",
    "federation.kubeconfigPath": "the hub; required with `karmada`, refused with `none`",
    "federation.context": "the context in that file; empty: its current one",
    "federation.sweepInterval": "how often copies without an Instance are looked for",
    "federation.heartbeat": "how often the cell renews its Lease on the hub; `0s`: never",
    "quota.mode": "whether Instances wait for a grant; `disabled` is written out, never a fallback",
    "quota.kubeconfigPath": "the Milo root, for claims; required with `enforce`",
    "autoscaling.mode": "`on`: deployments with `maxReplicas` and `metrics` follow their load; "
    "needs component `autoscaling/cell`",
    "autoscaling.scaleDownStabilization": "how long a lower number must hold before it is taken",
    "quota.sweepInterval": "how often claims without an Instance are looked for",
    "networking": "whether networking kinds are consulted; `auto`: where the plane serves them",
    "referencedData": "whether Instances wait for the ConfigMaps and Secrets that they name",
    "webhookServer.host": "address the admission webhook listens on; empty: every one",
    "webhookServer.port": "its port; without the section nothing is admitted here",
    "webhookServer.tls.certDir": "folder of its certificate and key",
    "webhookServer.tls.certName": "the certificate in it",
    "webhookServer.tls.keyName": "the key in it",
    "webhookServer.tls.clientCAName": "CAs of client certificates, in it; empty: none asked for",
    "metricsServer.bindAddress": "where `/metrics` is served; `0`: nowhere",
    "metricsServer.secureServing": "TLS, and only for who may `get` it",
    "metricsServer.tls.certDir": "folder of its certificate and key",
    "metricsServer.tls.certName": "the certificate in it",
    "metricsServer.tls.keyName": "the key in it",
    "health.bindAddress": "where `/healthz` and `/readyz` are served; `0`: nowhere",
    "leaderElection.enabled": "whether a Lease decides who writes",
    "leaderElection.namespace": "where the Lease is; empty: the pod's namespace",
    "leaderElection.leaseDuration": "how long a Lease holds, in whole seconds",
    "leaderElection.renewDeadline": "a leader that cannot renew for so long stops writing",
    "leaderElection.retryPeriod": "how often it is renewed or asked for",
    "projection.requireCellLabel": "whether a copy that names no cell is kept from users",
    "cellHealth.unreachableAfter": "how long a cell may stay unheard; `0s`: for ever",
    "caches.bytesPerProject": "what is cached of one project, on its plane and of its hub copies",
    "caches.objectsPerProject": "the same, counted in objects with a body",
    "caches.bytesPerCell": "what is cached of the hub Instances of one cell",
    "caches.objectsPerCell": "the same, counted in objects with a body",
    "workers.total": "passes at once",
    "workers.perProject": "of those, at most so many of one project",
    "clients.requestTimeout": "how long a plane may take to answer",
    "clients.reconcileTimeout": "how long one pass may take",
    "clients.qpsPerPlane": "requests per second to one plane",
    "clients.burstPerPlane": "how many may go out at once before that counts",
    "clients.allowExec": "whether kubeconfigs may name a program that gets credentials",
    "clients.statusSettle": "how long a passing status is held back; `0s`: not at all",
    "telemetry.logLevel": "the least important lines that are written",
    "telemetry.logFormat": "a JSON object per line, or text",
    "telemetry.otlpEndpoint": "collector that takes OTLP over HTTP, by its base URL; empty: none",
    "telemetry.otlpMetrics": "whether the metrics of a scrape go there too, once a minute",
    "telemetry.traceSampleRatio": "the share of passes that are traced",
    "scope": "which Instances it runs: those of namespaces `ns-<uuid>`, or of all but its own",
    "security": "the Pod Security level of its Pods; `baseline` gives them a user namespace",
    "virtualMachine": "what a virtual machine gets: a condition, or nothing from this provider",
    "disks": "what a disk gets: a condition, or a directory that goes with the Pod",
    "networkPolicy": "whether each Instance gets a NetworkPolicy before its Pod",
    "network.denyEgress": "ranges of addresses that its Pods may not connect to, where that is on",
    "sizes": "what an instance type is given here, by name: `{cpu: 250m, memory: 256Mi}`",
    "pods.terminationGracePeriod": "how long a Pod may take to end, in whole seconds",
    "pods.availableAfter": "how long its containers have run when it is available",
    "pods.availableAfterRestart": "the same where one of them has restarted",
    "pods.provisioningAfter": "how long a start may take before it is reported",
    "pods.nodeSelector": "labels of the nodes of its Pods",
    "pods.tolerations": "tolerations of its Pods, as Kubernetes has them",
    "pods.priorityClassName": "their PriorityClass",
    "pods.runtimeClassName": "their RuntimeClass; hostile tenants need one with its own kernel",
}

INTRODUCTION: Final = f"""\
<!-- Generated by `./dev generate` from the settings models. -->

# Configuration

One YAML document per operator, `apiVersion: {API_VERSION}`,
`kind: ManagementOperator`, `CellOperator` or `PodProvider`. An unknown key, a wrong type or a
value out of range stops the process with exit code 2; `check-config --server-config FILE` says all
that is wrong, or what a valid file enables, and starts nothing. `completion bash` (`zsh`, `fish`)
prints a script that completes the command in a shell. Durations are text: `15s`, `10m`, `200ms`.
The file holds paths, never credentials.

## Keys
"""
FLAGS: Final = """\
## Flags and variables

A flag wins over a variable, a variable over the file, the file over the default.
"""


def render() -> str:
    return "\n".join(
        [
            INTRODUCTION,
            draw_table(("key", "operators", "values", "default", "tells"), _keys()),
            FLAGS,
            draw_table(("flag", "variable", "key"), _flags()),
        ]
    )


def find_keys(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo, object]]:
    """Every key of a file with its field and its default, sections opened."""
    for name, info in model.model_fields.items():
        path = f"{above}{info.alias or name}"
        section = _section_of(info.annotation)
        if section is None:
            yield path, info, info.get_default(call_default_factory=True)
            continue
        given = info.get_default()
        for key, inner, default in find_keys(section, f"{path}."):
            yield key, inner, _default_in(given, key.removeprefix(f"{path}."), section, default)


def _section_of(annotation: object) -> type[BaseModel] | None:
    parts = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
    for part in parts:
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def _default_in(given: object, key: str, section: type[BaseModel], default: object) -> object:
    """What a section that has a default of its own has at a key; a deeper one answered already."""
    if not isinstance(given, section) or "." in key:
        return default
    by_alias = {info.alias or name: name for name, info in section.model_fields.items()}
    return getattr(given, by_alias[key])


def _keys() -> Iterator[tuple[str, str, str, str, str]]:
    found: dict[str, dict[str, tuple[FieldInfo, object]]] = {}
    for operator, model in OPERATORS:
        for path, info, default in find_keys(model):
            found.setdefault(path, {})[operator] = (info, default)
    if odd := found.keys() ^ TELLS.keys():
        raise LookupError(f"describing the configuration: no key or no sentence for {sorted(odd)}")
    for path in TELLS:
        by_operator = found[path]
        defaults = {operator: _say(default) for operator, (_, default) in by_operator.items()}
        told = set(defaults.values())
        default = told.pop() if len(told) == 1 else _say_each(defaults)
        info = next(iter(by_operator.values()))[0]
        yield f"`{path}`", _say_operators(by_operator), _values(info), default, TELLS[path]


def _say_operators(found: Mapping[str, object]) -> str:
    return "all" if len(found) == len(OPERATORS) else ", ".join(found)


def _say_each(defaults: Mapping[str, str]) -> str:
    return ", ".join(f"{operator}: {default}" for operator, default in defaults.items())


def _say(default: object) -> str:
    if isinstance(default, timedelta):
        return f"`{format_duration(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "" if default in ("", (), {}) else f"`{default}`"


def _values(info: FieldInfo) -> str:
    annotation = info.annotation
    if get_origin(annotation) is Literal:
        return " \\| ".join(f"`{value}`" for value in get_args(annotation))
    words = {bool: "`true` \\| `false`", int: "number", float: "number", timedelta: "duration"}
    bounds = {
        name: getattr(rule, name)
        for rule in info.metadata
        for name in ("ge", "le")
        if getattr(rule, name, None) is not None
    }
    word = words.get(annotation, "text") if isinstance(annotation, type) else "text"
    return f"{word}, {bounds['ge']} … {bounds['le']}" if bounds else word


def _flags() -> Iterator[tuple[str, str, str]]:
    yield f"`{SERVER_CONFIG_FLAG}`", f"`{SERVER_CONFIG_VARIABLE}`", "the file itself"
    for override in OVERRIDES:
        flag = f"`{override.flag}`" if override.flag else ""
        yield flag, f"`{override.variable}`", f"`{'.'.join(override.path)}`"
    yield "", "`POD_NAMESPACE`, `POD_NAME`", "namespace and identity of the Lease, from the pod"


def main() -> int:
    return keep_page(PAGE, render)


if __name__ == "__main__":
    sys.exit(main())
