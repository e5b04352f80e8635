"""The programs of the planes, and the cache key of a built one. Pure.

Versions are read from `go.mod` only, so that a version stamp cannot differ from what was built.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from e2e.harness.errors import PlanesError


@dataclass(frozen=True, slots=True)
class ToolModule:
    """A folder with a `go.mod`; separate, because a shared one would raise each other's
    `k8s.io/*`.
    """

    name: str
    requires: str
    # Linker variables that carry the version; Karmada refuses a Kubernetes of version v0.0.0
    # (neighbours.md 4.4).
    version_stamp: str | None = None
    major_minor_stamps: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """One program: its name here, and the Go package it is built from."""

    name: str
    module: ToolModule
    package: str


ETCD: Final = ToolModule("etcd", "go.etcd.io/etcd/server/v3")
_COMPONENT_VERSION: Final = "k8s.io/component-base/version"
KUBERNETES: Final = ToolModule(
    "kubernetes",
    "k8s.io/kubernetes",
    version_stamp=f"{_COMPONENT_VERSION}.gitVersion",
    major_minor_stamps=(f"{_COMPONENT_VERSION}.gitMajor", f"{_COMPONENT_VERSION}.gitMinor"),
)
KARMADA: Final = ToolModule(
    "karmada",
    "github.com/karmada-io/karmada",
    version_stamp="github.com/karmada-io/karmada/pkg/version.gitVersion",
)
PROMETHEUS: Final = ToolModule("prometheus", "github.com/prometheus/prometheus")
MODULES: Final = (ETCD, KUBERNETES, KARMADA, PROMETHEUS)


def _kubernetes(command: str) -> Binary:
    return Binary(command, KUBERNETES, f"k8s.io/kubernetes/cmd/{command}")


def _karmada(command: str) -> Binary:
    return Binary(f"karmada-{command}", KARMADA, f"{KARMADA.requires}/cmd/{command}")


# In build order: the first of a module compiles the shared packages.
PLANES: Final = (
    Binary("etcd", ETCD, ETCD.requires),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kubectl"),
    _karmada("webhook"),
    _karmada("aggregated-apiserver"),
    _karmada("controller-manager"),
    _karmada("scheduler"),
)
# Further programs of a node (in-cluster.md).
NODES: Final = (_kubernetes("kube-scheduler"), _kubernetes("kubelet"), _kubernetes("kube-proxy"))
# Tools that check alerting rules.
CHECKERS: Final = (Binary("promtool", PROMETHEUS, f"{PROMETHEUS.requires}/cmd/promtool"),)


def parse_required_version(go_mod: str, requires: str) -> str:
    """The version of the module that a tool module builds."""
    match = re.search(rf"^\s*(?:require\s+)?{re.escape(requires)}\s+(v\S+)", go_mod, re.MULTILINE)
    if match is None:
        raise PlanesError(
            f"reading go.mod: {requires} is not required there",
            remedy="restore the tool module from version control",
        )
    return match.group(1)


def parse_go_directive(go_mod: str) -> tuple[int, ...]:
    """The oldest Go release that can build a tool module."""
    match = re.search(r"^go\s+(\d+(?:\.\d+)*)", go_mod, re.MULTILINE)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def derive_flags(module: ToolModule, version: str) -> tuple[str, ...]:
    """Flags of `go build` for reproducible output without debug tables."""
    stamps = {module.version_stamp: version} if module.version_stamp else {}
    if module.major_minor_stamps:
        major, minor = version.removeprefix("v").split(".")[:2]
        stamps |= dict(zip(module.major_minor_stamps, (major, minor), strict=True))
    linker = ["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())]
    return ("-trimpath", "-buildvcs=false", "-ldflags", " ".join(linker))


def derive_key(files: Iterable[bytes], flags: Iterable[str], platform: str) -> str:
    """A digest of everything a built binary depends on, as a folder name.

    The Go release is left out: a new toolchain must not cause a build of ten minutes.
    """
    digest = hashlib.sha256()
    for part in (*files, *(flag.encode() for flag in flags), platform.encode()):
        # Length-prefixed, so that ("ab", "c") and ("a", "bc") differ.
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]
