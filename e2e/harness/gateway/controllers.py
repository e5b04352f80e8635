"""`python -m e2e.harness.gateway.controllers SETTINGS`: Milo's controller-manager.

The simulation's controllers for projects, registrations, default grants and quota run over HTTP on
real API servers; kinds, webhooks and policies of the root are copied into every project. While it
is stopped or frozen, planes answer but no project becomes Ready and claims stay pending.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
import sys
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import Client
from compute_sim_planes.json_types import string_at
from compute_sim_planes.milo.kinds import MANAGER, PROJECTS
from compute_sim_planes.milo.options import MiloOptions
from compute_sim_planes.milo.projects.controller import ProjectController
from compute_sim_planes.milo.quota.controller import QuotaController
from compute_sim_planes.milo.quota.registrations import activate_registrations
from compute_sim_planes.milo.suspension.enforcement import SuspensionController
from compute_sim_planes.time.sources import SystemClock
from e2e.harness.gateway.mirror import MANAGER as MIRROR
from e2e.harness.gateway.mirror import mirror_into
from e2e.harness.gateway.project_planes import ProjectPlanes
from e2e.harness.gateway.settings import ControllerSettings

_log: Final = logging.getLogger(__name__)


async def run(settings: ControllerSettings) -> None:
    """Runs until it is cancelled."""
    async with AsyncExitStack() as stack:
        trusted = ssl.create_default_context(cafile=str(settings.authority))
        transport = HttpTransport(settings.root, token=settings.root_token, context=trusted)
        stack.push_async_callback(transport.close)
        root = Client(transport, manager=MANAGER)
        planes = ProjectPlanes(settings, root)
        stack.push_async_callback(planes.close)
        clock = SystemClock()

        async def serve(project: str) -> None:
            await _serve(root, planes, project)

        projects = ProjectController(root, planes.client, clock, options=MiloOptions(), serve=serve)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(activate_registrations(root, clock), name="registrations")
            tasks.create_task(_end_planes_of_the_gone(root, planes), name="ends")
            tasks.create_task(projects.run(), name="projects")
            tasks.create_task(SuspensionController(root, clock).run(), name="suspensions")


async def _serve(root: Client, planes: ProjectPlanes, project: str) -> None:
    """The controllers of one project, while it exists."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(mirror_into(root, project, planes.client(project, MIRROR)))
        tasks.create_task(QuotaController(planes.client(project), SystemClock()).run())


async def _end_planes_of_the_gone(root: Client, planes: ProjectPlanes) -> None:
    present = {string_at(one, "metadata", "name") for one in (await root.list(PROJECTS)).items}
    for name in planes.left_over(present):
        await planes.end(name)
    async with aclosing(list_and_watch(root, PROJECTS)) as changes:
        async for seen in changes:
            name = string_at(seen.object, "metadata", "name")
            if seen.is_deleted:
                await planes.end(name)
            else:
                planes.remember(name)


async def work(settings: ControllerSettings) -> None:
    """Runs the controllers until SIGTERM; raises the exception that ended one of them."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    working = asyncio.create_task(run(settings))
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (working, waiting):
        task.cancel()
    await asyncio.wait({working, waiting})
    if not working.cancelled():
        working.result()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = ControllerSettings.model_validate_json(Path(sys.argv[1]).read_text("utf-8"))
    asyncio.run(work(settings))


if __name__ == "__main__":
    main()
