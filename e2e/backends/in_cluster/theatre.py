"""The stack of a session with operators as pods: home, cells and the single cluster have nodes.

What an administrator does by hand is done here and nowhere else: secrets with certificates and
credentials, where hub and Milo are, where the webhook answers. The operators speak with the tokens
kubelet gives them, and reach their own cluster through its Service `kubernetes`, behind which a
link stands that a scenario can cut.
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
from e2e.backends.crew import OperatorCrew
from e2e.backends.in_cluster import report
from e2e.backends.in_cluster.crew import PodCrew, PodFitting, apply_overlay
from e2e.backends.in_cluster.host import HostOfPods
from e2e.backends.in_cluster.overlay import SYSTEM, Overlay, Part, find_document
from e2e.backends.port import HOME, HUB, MANAGEMENT, ROOT, SINGLE, Cell
from e2e.backends.real import installing, programs
from e2e.backends.real.theatre import CELLS, SINGLE_MANAGEMENT, Making, Theatre, ToldUse
from e2e.backends.shipped import lay_over, shipped_configuration
from e2e.manifests import DEPLOY
from e2e.objects import object_at, objects_at, text_at
from e2e.planes.identities import a_cell_operator
from e2e.planes.kubeconfig import Context, render_kubeconfig
from e2e.planes.node.nodes import Nodes, announce
from e2e.planes.stack import Options

IMAGES: Final = DEPLOY.parent / ".images"
MANAGEMENT_PART: Final = Part(
    programs.MANAGEMENT,
    "compute-management-config",
    ("components/network-policy/management",),
    "components/high-availability/management",
)
CELL_PART: Final = Part(
    programs.CELL,
    "compute-cell-config",
    ("components/network-policy/cell",),
    "components/high-availability/cell",
)
WEBHOOK_SERVICE: Final = "compute-webhook"
WEBHOOK_PORT: Final = 443


def archive_of(program: str) -> Path:
    return IMAGES / program.removeprefix("compute-") / "image.tar"


def images_of_planes() -> dict[str, tuple[Path, ...]]:
    """What the node of each plane that hosts pods has from the start."""
    management, cell = archive_of(programs.MANAGEMENT), archive_of(programs.CELL)
    own = {HOME: (management,), **{one.name: (cell,) for one in CELLS}}
    return {**own, SINGLE.name: (management, cell)}


class PodTheatre(Theatre):
    """See the module's text."""

    # What is installed of each operator.
    management_part = MANAGEMENT_PART
    cell_part = CELL_PART
    # NSO's own five seconds are seen on `real`: every scenario here would spend them on its first
    # Instance, and none of them is about that.
    network_retry = timedelta(milliseconds=500)

    def __init__(self, making: Making | None = None) -> None:
        self.nodes = Nodes(images_of_planes())
        self.overlays: dict[str, Overlay] = {}
        super().__init__(making)

    @override
    def _options(self) -> Options:
        return replace(super()._options(), nodes=self.nodes, issuer=HOME)

    def _host(self, plane: str) -> HostOfPods:
        return self.nodes[plane]

    # --- installing ------------------------------------------------------------------------------

    @override
    async def _place_webhooks(self) -> dict[str, tuple[str, int]]:
        """The Services get their addresses from their clusters, so they come first."""
        self.overlays = self._make_overlays()
        for plane in self.overlays:
            await self._apply_some(plane, {("Namespace", SYSTEM), ("Service", WEBHOOK_SERVICE)})
        return {
            ROOT: await self._webhook_at(HOME),
            SINGLE.name: await self._webhook_at(SINGLE.name),
        }

    def _make_overlays(self) -> dict[str, Overlay]:
        own = self.planes.run_folder.path / "overlays"
        both = (self.management_part, self.cell_part)
        return {
            HOME: Overlay(own / HOME, "management", (self.management_part,)),
            **{cell.name: Overlay(own / cell.name, "cell", (self.cell_part,)) for cell in CELLS},
            SINGLE.name: Overlay(own / SINGLE.name, "single-cluster", both),
        }

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
        self._say_where_planes_are()
        await self._provide_secrets()
        for plane, overlay in self.overlays.items():
            async with self.planes.plane(plane).client() as client:
                await apply_overlay(overlay, client)
        await installing.furnish_homes(self.planes, CELLS)
        async with self.planes.plane(SINGLE.name).client() as single:
            await single.apply(installing.scraper_binding())
        for operator, plane in ((MANAGEMENT, HOME), *((cell.name, cell.name) for cell in CELLS)):
            link = self.links.to(operator, plane)
            await announce(self.planes.plane(plane), link.address, link.port)

    def _say_where_planes_are(self) -> None:
        authority = self.planes.plane(ROOT).site.pki.authority.decode()
        servers = {"hub": self._server(MANAGEMENT, HUB), "milo": self.planes.milo.server()}
        self.overlays[HOME].merged = {
            f"compute-{name}-kubeconfig": {
                "kubeconfig": _shipped_kubeconfig(name, server),
                "ca.crt": authority,
            }
            for name, server in servers.items()
        }
        single = self.overlays[SINGLE.name]
        found = find_document(
            single.render(), "ValidatingWebhookConfiguration", "compute-validating"
        )
        (webhook,) = objects_at(found, "webhooks")
        path = text_at(webhook, "clientConfig", "service", "path")
        plane = self.planes.plane(SINGLE.name)
        single.webhook = installing.client_of(self.links.webhook(SINGLE.name), path, plane)

    async def _provide_secrets(self) -> None:
        for plane in self.overlays:
            async with self.planes.plane(plane).client() as client:
                for secret in self._secrets_of(plane):
                    await client.apply(secret)

    def _secrets_of(self, plane: str) -> Iterator[JsonObject]:
        pki = self.planes.plane(plane).site.pki
        pair = {"tls.crt": pki.server.certificate, "tls.key": pki.server.key}
        yield _secret("compute-metrics-cert", {**pair, "ca.crt": pki.authority})
        if plane in {HOME, SINGLE.name}:
            yield _secret("compute-webhook-cert", pair)
        for cell in CELLS:
            if cell.name == plane:
                yield _secret("compute-hub-credentials", self._credentials(cell, HUB))
                yield _secret("compute-quota-credentials", self._credentials(cell, ROOT))

    def _credentials(self, cell: Cell, plane: str) -> dict[str, bytes]:
        site = self.planes.plane(plane).site
        server = self._server(cell.name, HUB) if plane == HUB else self.planes.milo.server()
        token = site.tokens.of(plane, a_cell_operator(cell.name).user)
        context = Context(plane, server, site.pki.authority, token)
        return {"kubeconfig": render_kubeconfig([context]).encode()}

    # --- operators -------------------------------------------------------------------------------

    @override
    async def _fit(self, webhooks: Mapping[str, tuple[str, int]]) -> dict[str, OperatorCrew]:
        management = shipped_configuration("management", "compute-management-config")
        fittings = [self._fitting(MANAGEMENT, HOME, self.management_part, management)]
        for cell in CELLS:
            shipped = shipped_configuration("cell", "compute-cell-config")
            said: JsonObject = {"cell": {"name": cell.name, "cityCode": cell.city}}
            fitted = self._fitting(cell.name, cell.name, self.cell_part, shipped)
            fittings.append(replace(fitted, configuration=lay_over(shipped, said)))
        both = ((SINGLE_MANAGEMENT, self.management_part), (SINGLE.name, self.cell_part))
        for operator, part in both:
            shipped = shipped_configuration("single-cluster", part.config)
            fittings.append(self._fitting(operator, SINGLE.name, part, shipped))
        return {fitting.operator: PodCrew(fitting) for fitting in fittings}

    def _fitting(self, operator: str, plane: str, part: Part, shipped: JsonObject) -> PodFitting:
        return PodFitting(
            operator=operator,
            deployment=part.deployment,
            node=self._host(plane),
            overlay=self.overlays[plane],
            shipped=shipped,
            configuration=shipped,
        )

    @override
    def describe_use(self) -> ToldUse:
        """What of `deploy/` this session used, and what it did not."""
        applied = {path for overlay in self.overlays.values() for path in overlay.ever}
        objects = self.backstage.run(report.find_absent(self.planes, applied))
        cells = [cell.name for cell in CELLS]
        rights = report.find_unused_rights(self.audits.read(), cells)
        use = report.Use(tuple(objects), tuple(rights))
        told = [report.describe_pods(name, self.pod_crew(name).pods) for name in self.crews]
        lines = [*(line for lines in told for line in lines), *use.describe()]
        return ToldUse(tuple(lines), tuple(use.find_faults()))

    def pod_crew(self, operator: str) -> PodCrew:
        found = self.crews[operator]
        if not isinstance(found, PodCrew):
            raise TypeError(f"{operator} does not run as a pod")
        return found


def _shipped_kubeconfig(name: str, server: str) -> str:
    """The one that ships, with the address this installation says."""
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
