"""The stack of a session with operators as pods: home, cells and the single cluster have nodes.

The manual steps of an installation are here: Secrets with certificates and credentials, the
addresses of hub, Milo and webhook. Operators use the tokens that the kubelet mounts, and reach
their own cluster through the Service `kubernetes`, which points to a link that a scenario can cut.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import yaml
from typing_extensions import override

from compute_api_types.wire import JsonObject
from e2e.backends.pods import report
from e2e.backends.pods.host import PodHost
from e2e.backends.pods.overlay import SYSTEM, Overlay, OverlayOperator, find_document
from e2e.backends.pods.replicas import PodReplicaConfig, PodReplicas, apply_overlay
from e2e.backends.real import installing, programs
from e2e.backends.real.environment import (
    CELLS,
    SINGLE_MANAGEMENT,
    EnvironmentOptions,
    RealEnvironment,
    UsageReport,
)
from e2e.backends.replicas import OperatorReplicas
from e2e.harness.access.kubeconfig import Context, render_kubeconfig
from e2e.harness.deploy.manifests import DEPLOY
from e2e.harness.deploy.shipped import merge_over, shipped_configuration
from e2e.harness.node.nodes import Nodes, announce
from e2e.harness.planes.identities import a_cell_operator
from e2e.harness.stack.stack import Options
from e2e.world.documents import INSTANCE_TYPE
from e2e.world.objects import object_at, objects_at, text_at
from e2e.world.port import HOME, HUB, MANAGEMENT, ROOT, SINGLE, Cell, Needs, name_provider

IMAGES: Final = DEPLOY.parent / ".images"
MANAGEMENT_PART: Final = OverlayOperator(
    programs.MANAGEMENT,
    "compute-management-config",
    ("components/network-policy/management",),
    "components/high-availability/management",
)
CELL_PART: Final = OverlayOperator(
    programs.CELL,
    "compute-cell-config",
    ("components/network-policy/cell",),
    "components/high-availability/cell",
)
PROVIDER_PART: Final = OverlayOperator(
    programs.POD_PROVIDER,
    "compute-pod-provider-config",
    ("components/network-policy/pod-provider",),
    "components/high-availability/pod-provider",
    resource="pod-provider/operator",
)
# What an instance type is given on nodes that share one machine, and a stop without long waits.
PROVIDER_SETTINGS: Final[JsonObject] = {
    "sizes": {INSTANCE_TYPE: {"cpu": "50m", "memory": "64Mi"}},
    "pods": {"terminationGracePeriod": "2s"},
}
INSTANCE_IMAGES: Final = IMAGES / "instances" / "image.tar"
WEBHOOK_SERVICE: Final = "compute-webhook"
WEBHOOK_PORT: Final = 443


def archive_of(program: str) -> Path:
    return IMAGES / program.removeprefix("compute-") / "image.tar"


def previous_archive_of(program: str) -> Path:
    return IMAGES / "previous" / f"{program.removeprefix('compute-')}.tar"


def images_of_planes() -> dict[str, tuple[Path, ...]]:
    """The image archives on the node of each plane that runs pods; those of a previous version,
    where they were built.
    """
    management = _archives_of(programs.MANAGEMENT)
    cell = (*_archives_of(programs.CELL), archive_of(programs.POD_PROVIDER), INSTANCE_IMAGES)
    own = {HOME: management, **{one.name: cell for one in CELLS}}
    return {**own, SINGLE.name: (*management, *cell)}


def _archives_of(program: str) -> tuple[Path, ...]:
    previous = previous_archive_of(program)
    return (archive_of(program), *([previous] if previous.exists() else []))


class PodEnvironment(RealEnvironment):
    """The stack of one session with nodes."""

    # The overlay of each operator.
    management_part = MANAGEMENT_PART
    cell_part = CELL_PART
    provider_part = PROVIDER_PART
    # NSO's own five seconds are covered on `real`; here every scenario would wait them for its
    # first Instance.
    network_retry = timedelta(milliseconds=500)

    def __init__(self, options: EnvironmentOptions | None = None) -> None:
        self.nodes = Nodes(images_of_planes())
        self.overlays: dict[str, Overlay] = {}
        super().__init__(options)

    @override
    def _options(self) -> Options:
        return replace(super()._options(), nodes=self.nodes, issuer=HOME)

    def _host(self, plane: str) -> PodHost:
        return self.nodes[plane]

    # --- installing ------------------------------------------------------------------------------

    @override
    async def _reserve_webhooks(self) -> dict[str, tuple[str, int]]:
        """Creates the Services first, because their cluster assigns the addresses."""
        self.overlays = self._make_overlays()
        for plane in self.overlays:
            await self._apply_some(plane, {("Namespace", SYSTEM), ("Service", WEBHOOK_SERVICE)})
        return {
            ROOT: await self._webhook_at(HOME),
            SINGLE.name: await self._webhook_at(SINGLE.name),
        }

    def _make_overlays(self) -> dict[str, Overlay]:
        own = self.planes.run_folder.path / "overlays"
        in_cell = (self.cell_part, self.provider_part)
        in_single = (self.management_part, self.cell_part, self._single_provider_part)
        return {
            HOME: Overlay(own / HOME, "management", (self.management_part,)),
            **{cell.name: Overlay(own / cell.name, "cell", in_cell) for cell in CELLS},
            SINGLE.name: Overlay(own / SINGLE.name, "single-cluster", in_single),
        }

    @property
    def _single_provider_part(self) -> OverlayOperator:
        """The overlay of a single cluster has the provider already."""
        return replace(self.provider_part, resource="")

    async def _apply_some(self, plane: str, wanted: set[tuple[str, str]]) -> None:
        async with self.planes.plane(plane).client() as client:
            for document in self.overlays[plane].render():
                if (text_at(document, "kind"), text_at(document, "metadata", "name")) in wanted:
                    await client.apply(document)

    async def _webhook_at(self, plane: str) -> tuple[str, int]:
        path = f"/api/v1/namespaces/{SYSTEM}/services/{WEBHOOK_SERVICE}"
        async with self.planes.plane(plane).client() as client:
            return text_at(await client.get(path), "spec", "clusterIP"), WEBHOOK_PORT

    @override
    async def _install(self) -> None:
        await installing.install_far_planes(self.planes, CELLS, self.links.webhook(ROOT))
        self._set_addresses()
        await self._provide_secrets()
        for plane, overlay in self.overlays.items():
            async with self.planes.plane(plane).client() as client:
                await apply_overlay(overlay, client)
        await installing.prepare_homes(self.planes, CELLS)
        async with self.planes.plane(SINGLE.name).client() as single:
            await single.apply(installing.scraper_binding())
        for operator, plane in ((MANAGEMENT, HOME), *((cell.name, cell.name) for cell in CELLS)):
            link = self.links.to(operator, plane)
            await announce(self.planes.plane(plane), link.address, link.port)

    def _set_addresses(self) -> None:
        authority = self.planes.plane(ROOT).runtime.pki.authority.decode()
        servers = {"hub": self._server(MANAGEMENT, HUB), "milo": self.planes.milo.server()}
        self.overlays[HOME].merged = {
            f"compute-{name}-kubeconfig": {
                "kubeconfig": _shipped_kubeconfig(name, server),
                "ca.crt": authority,
            }
            for name, server in servers.items()
        }
        single = self.overlays[SINGLE.name]
        webhooks = find_document(
            single.render(), "ValidatingWebhookConfiguration", "compute-validating"
        )
        (webhook,) = objects_at(webhooks, "webhooks")
        path = text_at(webhook, "clientConfig", "service", "path")
        plane = self.planes.plane(SINGLE.name)
        single.webhook = installing.client_of(self.links.webhook(SINGLE.name), path, plane)

    async def _provide_secrets(self) -> None:
        for plane in self.overlays:
            async with self.planes.plane(plane).client() as client:
                for secret in self._secrets_of(plane):
                    await client.apply(secret)

    def _secrets_of(self, plane: str) -> Iterator[JsonObject]:
        pki = self.planes.plane(plane).runtime.pki
        pair = {"tls.crt": pki.server.certificate, "tls.key": pki.server.key}
        yield _secret("compute-metrics-cert", {**pair, "ca.crt": pki.authority})
        if plane in {HOME, SINGLE.name}:
            yield _secret("compute-webhook-cert", pair)
        for cell in CELLS:
            if cell.name == plane:
                yield _secret("compute-hub-credentials", self._credentials(cell, HUB))
                yield _secret("compute-quota-credentials", self._credentials(cell, ROOT))

    def _credentials(self, cell: Cell, plane: str) -> dict[str, bytes]:
        runtime = self.planes.plane(plane).runtime
        server = self._server(cell.name, HUB) if plane == HUB else self.planes.milo.server()
        token = runtime.tokens.of(plane, a_cell_operator(cell.name).user)
        context = Context(plane, server, runtime.pki.authority, token)
        return {"kubeconfig": render_kubeconfig([context]).encode()}

    # --- operators -------------------------------------------------------------------------------

    @override
    async def _configure(
        self, webhooks: Mapping[str, tuple[str, int]]
    ) -> dict[str, OperatorReplicas]:
        management = shipped_configuration("management", "compute-management-config")
        configs = [self._pod_config(MANAGEMENT, HOME, self.management_part, management)]
        for cell in CELLS:
            shipped = shipped_configuration("cell", "compute-cell-config")
            settings: JsonObject = {"cell": {"name": cell.name, "cityCode": cell.city}}
            config = self._pod_config(cell.name, cell.name, self.cell_part, shipped)
            configs.append(replace(config, configuration=merge_over(shipped, settings)))
            configs.append(self._provider_config(cell.name, "pod-provider", self.provider_part))
        single = self._single_provider_part
        configs.append(self._provider_config(SINGLE.name, "single-cluster", single))
        both = ((SINGLE_MANAGEMENT, self.management_part), (SINGLE.name, self.cell_part))
        for operator, part in both:
            shipped = shipped_configuration("single-cluster", part.config)
            configs.append(self._pod_config(operator, SINGLE.name, part, shipped))
        return {config.operator: PodReplicas(config) for config in configs}

    def _provider_config(self, cell: str, overlay: str, part: OverlayOperator) -> PodReplicaConfig:
        shipped = shipped_configuration(overlay, part.config)
        config = self._pod_config(name_provider(cell), cell, part, shipped)
        return replace(config, configuration=merge_over(shipped, PROVIDER_SETTINGS))

    @override
    def _start_provider(self, cell: str) -> None:
        """The pod provider is a Deployment of the cell."""

    @override
    def _arrange_other(self, name: str, needs: Needs) -> tuple[int, JsonObject]:
        """A pod provider runs as its cell's operator does, and where that is stopped too: what
        runs is torn down by it.
        """
        overrides: JsonObject = dict(needs.settings.get(name, {}))
        is_single = name == name_provider(SINGLE.name)
        return (int(needs.is_single) if is_single else max(needs.replicas, 1)), overrides

    def _pod_config(
        self, operator: str, plane: str, part: OverlayOperator, shipped: JsonObject
    ) -> PodReplicaConfig:
        return PodReplicaConfig(
            operator=operator,
            deployment=part.deployment,
            node=self._host(plane),
            overlay=self.overlays[plane],
            shipped=shipped,
            configuration=shipped,
        )

    @override
    def describe_use(self) -> UsageReport:
        """Which objects and rights of `deploy/` this session used."""
        applied = {path for overlay in self.overlays.values() for path in overlay.ever}
        objects = self.background_loop.run(report.find_absent(self.planes, applied))
        cells = [cell.name for cell in CELLS]
        rights = report.find_unused_rights(self.audits.read(), cells)
        use = report.UnusedReport(tuple(objects), tuple(rights))
        described = [
            report.describe_pods(name, self.pod_replicas(name).pods) for name in self.replicas
        ]
        lines = [*(line for lines in described for line in lines), *use.describe()]
        return UsageReport(tuple(lines), tuple(use.find_faults()))

    def pod_replicas(self, operator: str) -> PodReplicas:
        replicas = self.replicas[operator]
        if not isinstance(replicas, PodReplicas):
            raise TypeError(f"{operator} does not run as a pod")
        return replicas


def _shipped_kubeconfig(name: str, server: str) -> str:
    """The shipped kubeconfig with the address of this installation."""
    text = (DEPLOY / "management" / "kubeconfigs" / f"{name}.yaml").read_text("utf-8")
    document: JsonObject = yaml.safe_load(text)
    (cluster,) = objects_at(document, "clusters")
    cluster["cluster"] = {**object_at(cluster, "cluster"), "server": server}
    return yaml.safe_dump(document, sort_keys=False)


def _secret(name: str, content: Mapping[str, bytes]) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": SYSTEM, "name": name},
        "data": {key: base64.b64encode(value).decode() for key, value in content.items()},
    }
