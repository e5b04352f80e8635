"""The planes of the demo as one process: `python -m e2e.demo.embedded FOLDER PORT`.

```
server            /                    Milo: the root, and each project under Milo's own paths
                  /planes/NAME         home, hub and both cells
                  /demo/cells/X/VERB   cut and heal, for the demo only
an uplink a cell  /, /planes/hub       Milo and the hub as that cell's operator reaches them
```

TLS, the shipped rights, admission by the operator's webhook at PORT; Karmada, provider and NSO run
in the process too. When `planes.json` appears in FOLDER, the credentials are there: a kubeconfig
per operator and plane, and one for users with a context per plane.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from compute_api_types import labels
from compute_sim_planes.api_server.admission.webhook_clients import HttpWebhooks
from compute_sim_planes.api_server.authz.identity import ADMIN, User
from compute_sim_planes.api_server.http.responses import json_response, text_response
from compute_sim_planes.api_server.http.server import HttpServer, PrefixRoutes
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.certificates import make_server_files
from compute_sim_planes.client.rest import Client
from compute_sim_planes.karmada.options import real_plane_options
from compute_sim_planes.karmada.policies.admission import karmada_amendments
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.networking import NetworkServices, NsoOptions
from compute_sim_planes.pod_life import ProviderOptions
from compute_sim_planes.provider import Provider
from compute_sim_planes.time.sources import SeededIdentities, SystemClock
from e2e.backends.network_delivery import NetworkDelivery
from e2e.backends.sim.external import KARMADA, NSO, PROVIDER
from e2e.demo import installing
from e2e.demo.backend import CELLS, PROJECT_NAMESPACES
from e2e.demo.credentials import (
    Credentials,
    cell_user,
    credential_path,
    management_user,
    write_credential,
)
from e2e.demo.uplinks import Uplink
from e2e.harness.processes.ports import Ports
from e2e.world.port import HOME, HUB, MANAGEMENT, ROOT

READY: Final = "planes.json"
MILO: Final = "milo"
# Shorter than in a real cell, so that the story takes a minute.
SHORT: Final = timedelta(milliseconds=500)


class Embedded:
    """All planes and external controllers."""

    def __init__(self, folder: Path, webhook: int) -> None:
        self._folder = folder
        self._files = make_server_files(folder / "pki")
        self._authority = self._files.authority.read_bytes()
        self._clock = SystemClock()
        self._identities = SeededIdentities(random.SystemRandom())
        self._credentials = Credentials()
        self._ports = Ports()
        self._milo = self._make_milo(webhook)
        self._planes = {name: self._make(name) for name in (HOME, *(c.name for c in CELLS))}
        self._planes[HUB] = self._make_hub()
        parts = KarmadaParts(self._clock, self._identities, real_plane_options())
        self._karmada = Karmada(self._planes[HUB].connect(KARMADA), parts)
        self._uplinks = {cell.name: self._make_uplink() for cell in CELLS}
        self._server = HttpServer(self._routes(), tls=self._files.context())
        self._work: list[asyncio.Task[None]] = []

    # --- life cycle ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Installs and starts everything, then writes `planes.json`."""
        await self._milo.start()
        await installing.install_root(self._milo.planes.root, self._authority)
        await installing.install_home(self._planes[HOME])
        await installing.install_hub(self._planes[HUB])
        for cell in CELLS:
            await installing.install_cell(self._planes[cell.name], cell)
        self._karmada.start()
        await asyncio.gather(self._add_projects(), self._join_cells())
        await self._server.start()
        for uplink in self._uplinks.values():
            await uplink.open()
        self._hand_out()

    async def close(self) -> None:
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._karmada.stop()
        for uplink in self._uplinks.values():
            await uplink.cut()
        await self._server.close()
        for plane in self._planes.values():
            await plane.close()
        await self._milo.close()
        self._ports.close()

    async def failure(self) -> None:
        """Never returns; raises the exception that ended an external controller."""
        await asyncio.gather(*self._work)

    # --- planes ----------------------------------------------------------------------------------

    def _make_milo(self, webhook: int) -> Milo:
        address = f"https://127.0.0.1:{webhook}"
        return Milo(
            MiloParts(
                self._clock,
                self._identities,
                tokens=self._credentials.of(ROOT),
                webhooks=HttpWebhooks({installing.WEBHOOK: address}),
            )
        )

    def _make(self, name: str) -> Plane:
        tokens = self._credentials.of(name)
        return Plane(name, PlaneParts(self._clock, self._identities, tokens=tokens))

    def _make_hub(self) -> Plane:
        parts = PlaneParts(
            self._clock,
            self._identities,
            tokens=self._credentials.of(HUB),
            amendments=karmada_amendments(self._identities),
        )
        return Plane(HUB, parts)

    def _make_uplink(self) -> Uplink:
        routes = PrefixRoutes()
        routes.add("", self._milo.router)
        routes.add(f"/planes/{HUB}", self._planes[HUB])
        return Uplink(routes, self._files.context(), self._ports.reserve())

    def _routes(self) -> PrefixRoutes:
        routes = PrefixRoutes()
        routes.add("", self._milo.router)
        for name, plane in self._planes.items():
            routes.add(f"/planes/{name}", plane)
        routes.add("/demo", Control(self))
        return routes

    # --- objects ---------------------------------------------------------------------------------

    async def _add_projects(self) -> None:
        for place in PROJECT_NAMESPACES:
            await self._milo.add_project(place.project)
            await installing.prepare_project(self._milo.planes.at(place.project), place)

    async def _join_cells(self) -> None:
        for cell in CELLS:
            self._start(Provider(self._client(cell.name, PROVIDER), self._clock, _slowly()).run())
            nso = self._client(cell.name, NSO)
            options = NsoOptions(context_delay=SHORT, binding_retry=SHORT)
            self._start(NetworkServices(nso, self._clock, options).run())
            self._start(NetworkDelivery(nso, *installing.NETWORKS).run())
        await asyncio.gather(*(self._join(cell.name, cell.city) for cell in CELLS))

    async def _join(self, cell: str, city: str) -> None:
        member = self._planes[cell].connect(KARMADA)
        await self._karmada.join(cell, member, {labels.TOPOLOGY_CITY_CODE: city})

    def _client(self, plane: str, user: User) -> Client:
        return Client(self._planes[plane].connect(user), manager=user.name)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        self._work.append(asyncio.create_task(work))

    # --- credentials -----------------------------------------------------------------------------

    def _hand_out(self) -> None:
        hub = f"/planes/{HUB}"
        management = management_user()
        url = self._server.url
        self._give(MANAGEMENT, HOME, f"{url}/planes/{HOME}", self._token(HOME, management))
        self._give(MANAGEMENT, HUB, f"{url}{hub}", self._token(HUB, management))
        self._give(MANAGEMENT, MILO, url, self._token(ROOT, management))
        for name, uplink in self._uplinks.items():
            at_home, abroad = cell_user(name, is_home=True), cell_user(name, is_home=False)
            self._give(name, HOME, f"{url}/planes/{name}", self._token(name, at_home))
            self._give(name, HUB, f"{uplink.url}{hub}", self._token(HUB, abroad))
            self._give(name, MILO, uplink.url, self._token(ROOT, abroad))
        self._announce()

    def _token(self, plane: str, user: User) -> str:
        return self._credentials.issue(plane, user)

    def _give(self, operator: str, plane: str, server: str, token: str) -> None:
        path = credential_path(self._folder, operator, plane)
        write_credential(path, server, token, self._authority)

    def _announce(self) -> None:
        servers = {place.project: project_path(place.project) for place in PROJECT_NAMESPACES}
        servers |= {name: f"/planes/{name}" for name in (HUB, *(cell.name for cell in CELLS))}
        servers |= {ROOT: "", HOME: f"/planes/{HOME}"}
        admin, url = self._credentials.admin, self._server.url
        contexts = [
            Context(name, f"{url}{path}", admin, self._authority) for name, path in servers.items()
        ]
        write_kubeconfig(self._folder / "kubeconfig", contexts)
        announced = {"url": url, "token": admin, "servers": servers}
        draft = self._folder / f"{READY}.draft"
        draft.touch(mode=0o600)  # it contains a token
        draft.write_text(json.dumps(announced), "utf-8")
        draft.rename(self._folder / READY)  # atomic: a reader sees the complete file

    # --- commands of the demo --------------------------------------------------------------------

    async def cut(self, cell: str) -> None:
        await self._uplinks[cell].cut()
        self._karmada.cut(cell)

    async def heal(self, cell: str) -> None:
        await self._uplinks[cell].open()
        self._karmada.heal(cell)

    def is_admin(self, headers: Mapping[str, str]) -> bool:
        return self._credentials.of(ROOT).authenticate(headers) == ADMIN

    def has_cell(self, name: str) -> bool:
        return name in self._uplinks


class Control:
    """`POST /cells/NAME/cut` and `/heal`, with the administrator's token."""

    def __init__(self, embedded: Embedded) -> None:
        self._embedded = embedded

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        del body  # the path is the whole command
        if not self._embedded.is_admin(headers):
            return text_response("not yours to ask\n", 401)
        match (method, *target.strip("/").split("/")):
            case ("POST", "cells", name, "cut") if self._embedded.has_cell(name):
                await self._embedded.cut(name)
            case ("POST", "cells", name, "heal") if self._embedded.has_cell(name):
                await self._embedded.heal(name)
            case _:
                return text_response(f"no such command: {method} {target}\n", 404)
        return json_response({})


def _slowly() -> ProviderOptions:
    return ProviderOptions(start_delay=SHORT, stop_delay=SHORT, available_after=timedelta())


async def serve(folder: Path, webhook: int) -> None:
    """Serves until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    embedded = Embedded(folder, webhook)
    ended = asyncio.create_task(stopped.wait())
    try:
        await embedded.open()
        failed = asyncio.create_task(embedded.failure())
        await asyncio.wait({ended, failed}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        failed.cancel()
    finally:
        ended.cancel()
        await embedded.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
