"""Manifests for the planes: Karmada's from its Go module, our CRDs, and those of external systems.

Karmada's manifests are not copied into our tree but read from the version that was built, and
adapted to processes on loopback. Adapting is pure; the readers at the end use files and the Go
command.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import yaml

from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from e2e.harness.errors import PlanesError
from e2e.harness.planes.topology import Role
from e2e.harness.programs.binaries import KARMADA
from e2e.harness.programs.build import explain_failure, oldest_go
from e2e.harness.programs.store import ModuleFiles, Store
from e2e.harness.programs.toolchain import Toolchain, find_toolchain

KARMADA_SYSTEM: Final = "karmada-system"
KARMADA_CLUSTER: Final = "karmada-cluster"
WEBHOOK_HOST: Final = "karmada-webhook.karmada-system.svc:443"
CA_PLACEHOLDER: Final = "{{caBundle}}"
OUR_CRDS: Final = Path(__file__).parents[3] / "deploy" / "crds"
# Planes on which a group is installed; projects have what the root has (neighbours.md 2.2).
ROLES_OF_GROUP: Final = {
    "compute.datumapis.com": frozenset(Role),
    "networking.datumapis.com": frozenset({Role.ROOT, Role.PROJECT, Role.CELL}),
    "resourcemanager.miloapis.com": frozenset({Role.ROOT, Role.PROJECT}),
    "quota.miloapis.com": frozenset({Role.ROOT, Role.PROJECT}),
    "iam.miloapis.com": frozenset({Role.ROOT, Role.PROJECT}),
}


def parse_documents(text: str) -> list[JsonObject]:
    """The objects in a YAML text, without empty documents."""
    return [document for document in yaml.safe_load_all(text) if isinstance(document, dict)]


def a_namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def fit_aggregation(
    text: str, authority: bytes, port: int, host: str = "localhost"
) -> list[JsonObject]:
    """APIService and Service for an aggregated server at this address."""
    documents = parse_documents(_with_authority(text, authority))
    for document in documents:
        match string_at(document, "kind"):
            case "APIService":
                object_at(document, "spec", "service")["port"] = port
            case "Service":
                object_at(document, "spec")["externalName"] = host
            case kind:
                raise _unexpected(kind)
    return documents


def fit_webhooks(text: str, authority: bytes, server: str) -> list[JsonObject]:
    """Webhook configurations that call the webhook at `host:port`."""
    if WEBHOOK_HOST not in text:
        raise _unexpected("webhook address")
    return parse_documents(_with_authority(text, authority).replace(WEBHOOK_HOST, server))


def select_crds(documents: Iterable[JsonObject], role: Role) -> list[JsonObject]:
    """The CRDs of a plane with this role, without kustomizations and unknown groups."""
    return [
        document
        for document in documents
        if string_at(document, "kind") == "CustomResourceDefinition"
        and role in ROLES_OF_GROUP.get(string_at(document, "spec", "group"), frozenset())
    ]


def _with_authority(text: str, authority: bytes) -> str:
    return text.replace(CA_PLACEHOLDER, base64.b64encode(authority).decode())


def _unexpected(what: str) -> PlanesError:
    return PlanesError(
        f"reading Karmada's manifests: unexpected {what}",
        remedy="fit e2e/harness/planes/plane_manifests.py to the version in "
        "e2e/harness/programs/karmada/go.mod",
    )


def read_documents(folder: Path) -> list[JsonObject]:
    """All objects in the YAML files of a folder; empty if it does not exist."""
    return [
        document
        for path in sorted(folder.rglob("*.yaml"))
        for document in parse_documents(path.read_text("utf-8"))
    ]


def read_crds() -> list[JsonObject]:
    """Our CRDs and those of simulated external systems; Karmada brings its own."""
    return [*read_documents(OUR_CRDS), *load_crds("milo", "networking")]


class KarmadaManifests:
    """Karmada's manifests in the module folder of the version that was built."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def crds(self) -> list[JsonObject]:
        return read_documents(self._folder / "charts/karmada/_crds/bases")

    def aggregation(self, authority: bytes, port: int, host: str) -> list[JsonObject]:
        path = self._folder / "artifacts/deploy/karmada-aggregated-apiserver-apiservice.yaml"
        return fit_aggregation(path.read_text("utf-8"), authority, port, host)

    def webhooks(self, authority: bytes, server: str) -> list[JsonObject]:
        path = self._folder / "artifacts/deploy/webhook-configuration.yaml"
        return fit_webhooks(path.read_text("utf-8"), authority, server)


def find_karmada_manifests(store: Store) -> KarmadaManifests:
    """Finds the module folder with the Go command."""
    toolchain = find_toolchain(store, oldest_go(store), lambda _: None)
    asking = ("list", "-m", "-f", "{{.Dir}}", KARMADA.requires)
    if not _ask_go(toolchain, store, *asking):
        # The module cache may be absent: only programs are kept between runs.
        _ask_go(toolchain, store, "mod", "download", KARMADA.requires)
    return KarmadaManifests(Path(_ask_go(toolchain, store, *asking)))


def _ask_go(toolchain: Toolchain, store: Store, *arguments: str) -> str:
    asked = subprocess.run(
        [str(toolchain.go), *arguments],
        cwd=ModuleFiles.read(KARMADA, store.tree).folder,
        env=toolchain.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        raise explain_failure("Karmada's manifests", asked.stderr)
    return asked.stdout.strip()
