"""A whole Milo in this process: root, projects, front door, controllers.

Needs a running event loop and nothing else, so it works under virtual time; `front` is a transport
and can be put behind an `HttpServer`. Every task of it ends with `close`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from compute_sim_planes.api_server.identity import ADMIN, User
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.client import Client
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo.conditions import holds
from compute_sim_planes.milo.front import Connection, Front
from compute_sim_planes.milo.kinds import PROJECTS
from compute_sim_planes.milo.knobs import Knobs
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.planes import ROOT, MiloParts, Planes
from compute_sim_planes.milo.projects import ProjectController
from compute_sim_planes.milo.quota import QuotaController
from compute_sim_planes.milo.registrations import activate_registrations

_POLL = 0.02


class Milo:
    """See the module's text. `start` before use, `close` at the end."""

    def __init__(self, parts: MiloParts, knobs: Knobs | None = None) -> None:
        self.knobs = knobs or Knobs()
        self.planes = Planes(parts)
        self.front = Front(self.planes)
        self._clock = parts.clock
        self._controllers: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Installs Milo's kinds and starts its controllers."""
        await apply_manifests(self.planes.root.connect(), load_crds("milo"))
        self.start_controllers()

    def start_controllers(self) -> None:
        """Milo's controller-manager comes up; it remembers nothing from before."""
        if self._controllers is None:
            self.planes.restart_collector()
            self._controllers = asyncio.create_task(self._run(), name="milo")

    async def stop_controllers(self) -> None:
        """It goes down: planes still answer, nobody becomes Ready, claims stay pending."""
        task, self._controllers = self._controllers, None
        if task is not None:
            task.cancel()
            # What else a controller died of is raised here.
            with suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        try:
            await self.stop_controllers()
        finally:
            await self.planes.close()

    def connect(self, user: User = ADMIN) -> Connection:
        """A transport to Milo's one address, whose requests are all made by `user`."""
        return self.front.connect(user)

    def client(self, project: str = ROOT, *, user: User = ADMIN, manager: str = "test") -> Client:
        """A client of the root or of a project, through the front door."""
        prefix = project_path(project) if project else ""
        return Client(self.connect(user), manager=manager, prefix=prefix)

    async def add_project(self, name: str) -> JsonObject:
        """Creates a Project as its owner would, and waits until it is Ready."""
        root = self.client()
        wanted: JsonObject = {
            "apiVersion": PROJECTS.api_version,
            "kind": PROJECTS.kind,
            "metadata": {"name": name},
            "spec": {"ownerRef": {"kind": "Organization", "name": "organization"}},
        }
        await root.create(PROJECTS, wanted)
        while True:
            found = await root.get(PROJECTS, name)
            if found is not None and holds(found, "Ready"):
                return found
            await asyncio.sleep(_POLL)

    def take_away(self, project: str = ROOT) -> None:
        """A plane cannot be reached any more, by anybody: 503, and its watches end."""
        self.planes.take_away(project)

    def bring_back(self, project: str = ROOT) -> None:
        self.planes.bring_back(project)

    async def _run(self) -> None:
        root = self.planes.client()
        projects = ProjectController(
            root, self.planes.client, self._clock, knobs=self.knobs, serve=self._serve
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(activate_registrations(root, self._clock), name="milo registrations")
            tasks.create_task(projects.run(), name="milo projects")

    async def _serve(self, project: str) -> None:
        await QuotaController(self.planes.client(project), self._clock, self.knobs).run()
