"""A whole simulated Milo in this process: root, projects, router, controllers.

It needs only a running event loop, so it works in virtual time; `router` is a transport and can be
served by an `HttpServer`. `close` ends all its tasks.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from compute_sim_planes.api_server.authz.identity import ADMIN, User
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo.kinds import PROJECTS
from compute_sim_planes.milo.options import MiloOptions
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.planes import ROOT, MiloParts, Planes
from compute_sim_planes.milo.projects.controller import ProjectController
from compute_sim_planes.milo.quota.controller import QuotaController
from compute_sim_planes.milo.quota.registrations import activate_registrations
from compute_sim_planes.milo.router import Router, RouterTransport
from compute_sim_planes.milo.suspension.enforcement import SuspensionController

_POLL = 0.02


class Milo:
    """A Milo (see the module docstring). Call `start` before use and `close` at the end."""

    def __init__(self, parts: MiloParts, options: MiloOptions | None = None) -> None:
        self.options = options or MiloOptions()
        self.planes = Planes(parts)
        self.router = Router(self.planes)
        self._clock = parts.clock
        self._controllers: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Install Milo's CRDs and start its controllers."""
        await apply_manifests(self.planes.root.connect(), load_crds("milo"))
        self.start_controllers()

    def start_controllers(self) -> None:
        """Start Milo's controller-manager, without state from an earlier run."""
        if self._controllers is None:
            self.planes.restart_collector()
            self._controllers = asyncio.create_task(self._run(), name="milo")

    async def stop_controllers(self) -> None:
        """Stop it: planes are still served, projects do not become Ready, claims stay pending."""
        task, self._controllers = self._controllers, None
        if task is not None:
            task.cancel()
            # The error of a failed controller is raised here.
            with suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        try:
            await self.stop_controllers()
        finally:
            await self.planes.close()

    def connect(self, user: User = ADMIN) -> RouterTransport:
        """A transport to Milo's address with `user` as the user of every request."""
        return self.router.connect(user)

    def client(self, project: str = ROOT, *, user: User = ADMIN, manager: str = "test") -> Client:
        """A client of the root or of a project, through the router."""
        prefix = project_path(project) if project else ""
        return Client(self.connect(user), manager=manager, prefix=prefix)

    async def add_project(self, name: str) -> JsonObject:
        """Create a Project and wait until it is Ready."""
        root = self.client()
        desired: JsonObject = {
            "apiVersion": PROJECTS.api_version,
            "kind": PROJECTS.kind,
            "metadata": {"name": name},
            "spec": {"ownerRef": {"kind": "Organization", "name": "organization"}},
        }
        await root.create(PROJECTS, desired)
        while True:
            existing = await root.get(PROJECTS, name)
            if existing is not None and is_condition_true(existing, "Ready"):
                return existing
            await asyncio.sleep(_POLL)

    def make_unavailable(self, project: str = ROOT) -> None:
        """Make a plane unreachable for all clients: 503, and its watches end."""
        self.planes.make_unavailable(project)

    def make_available(self, project: str = ROOT) -> None:
        self.planes.make_available(project)

    async def _run(self) -> None:
        root = self.planes.client()
        projects = ProjectController(
            root, self.planes.client, self._clock, options=self.options, serve=self._serve
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(activate_registrations(root, self._clock), name="milo registrations")
            tasks.create_task(projects.run(), name="milo projects")
            suspensions = SuspensionController(root, self._clock)
            tasks.create_task(suspensions.run(), name="milo suspensions")

    async def _serve(self, project: str) -> None:
        await QuotaController(self.planes.client(project), self._clock, self.options).run()
