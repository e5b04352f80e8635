"""Which programs the planes are made of, and under which key a built one is kept.

Pure: the tool modules' files come in as text, keys and flags go out. Versions are read from
`go.mod` and stand nowhere else, so that a version stamp cannot disagree with what was built.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from e2e.planes.errors import PlanesError


@dataclass(frozen=True, slots=True)
class ToolModule:
    """A folder with a `go.mod`: modules apart, because one would lift the others' `k8s.io/*`."""

    name: str
    requires: str
    # Variables of the linker that carry the version; Karmada refuses to compare a Kubernetes
    # that calls itself v0.0.0 (neighbours.md 4.4).
    version_stamp: str | None = None
    major_minor_stamps: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """One program: what it is called here, and the Go package it is built from."""

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


# In the order they are built: the first of a module compiles what the others share.
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
# What a node needs on top (in-cluster.md).
NODES: Final = (_kubernetes("kube-scheduler"), _kubernetes("kubelet"), _kubernetes("kube-proxy"))
# Who judges our alerting rules.
JUDGES: Final = (Binary("promtool", PROMETHEUS, f"{PROMETHEUS.requires}/cmd/promtool"),)


def parse_required_version(go_mod: str, requires: str) -> str:
    """The version of the one module a tool module exists for."""
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(requires)}\s+(v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise PlanesError(
            f"reading go.mod: {requires} is not required there",
            remedy="restore the tool module from version control",
        )
    return found.group(1)


def parse_go_directive(go_mod: str) -> tuple[int, ...]:
    """The oldest Go release a tool module can be built with."""
    found = re.search(r"^go\s+(\d+(?:\.\d+)*)", go_mod, re.MULTILINE)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def derive_flags(module: ToolModule, version: str) -> tuple[str, ...]:
    """Flags of `go build`: the same bytes wherever the tree lies, without debug tables."""
    stamps = {module.version_stamp: version} if module.version_stamp else {}
    if module.major_minor_stamps:
        major, minor = version.removeprefix("v").split(".")[:2]
        stamps |= dict(zip(module.major_minor_stamps, (major, minor), strict=True))
    linker = ["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())]
    return ("-trimpath", "-buildvcs=false", "-ldflags", " ".join(linker))


def derive_key(files: Iterable[bytes], flags: Iterable[str], platform: str) -> str:
    """What a built binary depends on, shortened to a folder name.

    The Go release is left out on purpose: a new toolchain is no reason to build for ten minutes.
    """
    digest = hashlib.sha256()
    for part in (*files, *(flag.encode() for flag in flags), platform.encode()):
        # Lengths first: ("ab", "c") and ("a", "bc") must not meet.
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]
