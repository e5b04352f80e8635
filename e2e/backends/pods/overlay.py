"""The kustomization of an installation on top of `deploy/`, as `docs/howto/install.md` shows it.

It is written to a folder and rendered by kubectl, so `deploy/` is tested unchanged. It sets images,
addresses of hub and Milo, configuration and the number of replicas.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from compute_api_types.wire import JsonObject, JsonValue
from e2e.harness.deploy.kustomization_inputs import FILE
from e2e.harness.deploy.manifests import DEPLOY
from e2e.harness.stack.kubectl import kustomize
from e2e.world.components import parse_manifests
from e2e.world.objects import text_at

SYSTEM: Final = "compute-system"
# A hash of the configuration in the pod template, so that a change rolls the Deployment.
STAMP: Final = "example.net/configuration"
IMAGE_TAG: Final = "dev"
PREVIOUS_TAG: Final = "previous"


@dataclass(slots=True)
class DesiredDeployment:
    """Replicas and configuration of one Deployment."""

    replicas: int = 0
    tag: str = IMAGE_TAG
    configuration: JsonObject = field(default_factory=dict[str, JsonValue])
    # Incremented to roll pods without a change of configuration.
    round: int = 0


@dataclass(frozen=True, slots=True)
class OverlayOperator:
    """One operator of an overlay: its Deployment, its ConfigMap, its components."""

    deployment: str
    config: str
    components: tuple[str, ...]
    # Included only with more than one replica, as a user would do.
    high_availability: str
    # Beside the base, where that does not have it. Not a component: what a component generates
    # cannot be replaced by the kustomization that includes it.
    resource: str = ""


@dataclass(slots=True)
class Overlay:
    """One folder, rewritten for every change."""

    folder: Path
    base: str
    parts: tuple[OverlayOperator, ...]
    # Overrides of ConfigMaps that the base generates: name to files and their content.
    merged: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    # The webhook's client configuration, if this plane has a webhook configuration.
    webhook: JsonObject = field(default_factory=dict[str, JsonValue])
    desired: dict[str, DesiredDeployment] = field(default_factory=dict[str, DesiredDeployment])
    # Paths of the objects that were applied last.
    applied: list[str] = field(default_factory=list[str])
    ever: set[str] = field(default_factory=set[str])
    # Two operators of one plane may be stopped at once; the overlay is applied by one at a time.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def of(self, deployment: str) -> DesiredDeployment:
        return self.desired.setdefault(deployment, DesiredDeployment())

    def render(self) -> list[JsonObject]:
        """All objects of the plane."""
        self.folder.mkdir(parents=True, exist_ok=True)
        kustomization = self._kustomization()
        (self.folder / FILE).write_text(yaml.safe_dump(kustomization, sort_keys=False), "utf-8")
        return parse_manifests(kustomize(self.folder))

    def _kustomization(self) -> JsonObject:
        return {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [self._beside(one) for one in self._resources()],
            "components": [self._beside(one) for one in self._components()],
            "images": [
                {
                    "name": part.deployment,
                    "newName": f"localhost/{part.deployment}",
                    "newTag": self.of(part.deployment).tag,
                }
                for part in self.parts
            ],
            "configMapGenerator": [*self._configurations(), *self._merged()],
            "generatorOptions": {"disableNameSuffixHash": True},
            "patches": [*map(self._patch, self.parts), *self._webhook_patches()],
        }

    def _beside(self, folder: str) -> str:
        # Resolved, because kustomize resolves `..` from the real path of its folder.
        return os.path.relpath((DEPLOY / folder).resolve(), self.folder.resolve())

    def _resources(self) -> list[str]:
        return [self.base, *(part.resource for part in self.parts if part.resource)]

    def _components(self) -> list[str]:
        components = [component for part in self.parts for component in part.components]
        doubled = [part for part in self.parts if self.of(part.deployment).replicas > 1]
        return [*components, *(part.high_availability for part in doubled)]

    def _configurations(self) -> list[JsonValue]:
        made: list[JsonValue] = []
        for part in self.parts:
            if text := self._configuration(part):
                (self.folder / f"{part.config}.yaml").write_text(text, "utf-8")
                made.append(_generator(part.config, "replace", f"config.yaml={part.config}.yaml"))
        return made

    def _configuration(self, part: OverlayOperator) -> str:
        wanted = self.of(part.deployment).configuration
        return yaml.safe_dump(wanted, sort_keys=False) if wanted else ""

    def _merged(self) -> list[JsonValue]:
        made: list[JsonValue] = []
        for name, files in self.merged.items():
            for file, content in files.items():
                (self.folder / f"{name}.{file}").write_text(content, "utf-8")
            listed = [f"{file}={name}.{file}" for file in files]
            made.append(_generator(name, "merge", *listed))
        return made

    def _patch(self, part: OverlayOperator) -> JsonObject:
        wanted = self.of(part.deployment)
        text = f"{wanted.round} {self._configuration(part)} {self.merged}"
        stamp: JsonObject = {STAMP: hashlib.sha256(text.encode()).hexdigest()[:16]}
        patch: JsonObject = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": part.deployment, "namespace": SYSTEM},
            "spec": {
                "replicas": wanted.replicas,
                "template": {"metadata": {"annotations": stamp}},
            },
        }
        return {"patch": yaml.safe_dump(patch, sort_keys=False)}

    def _webhook_patches(self) -> list[JsonValue]:
        if not self.webhook:
            return []
        steps: list[JsonValue] = [
            {"op": "replace", "path": "/webhooks/0/clientConfig", "value": self.webhook}
        ]
        target: JsonObject = {
            "group": "admissionregistration.k8s.io",
            "kind": "ValidatingWebhookConfiguration",
            "name": "compute-validating",
        }
        return [{"target": target, "patch": yaml.safe_dump(steps, sort_keys=False)}]


def _generator(name: str, behavior: str, *files: str) -> JsonObject:
    return {"name": name, "namespace": SYSTEM, "behavior": behavior, "files": [*files]}


def find_document(documents: list[JsonObject], kind: str, name: str) -> JsonObject:
    for one in documents:
        if text_at(one, "kind") == kind and text_at(one, "metadata", "name") == name:
            return one
    raise LookupError(f"no {kind} {name!r} in the rendered overlay")
