"""A simulated Milo behind a port with TLS, for tests of programs with their own HTTP client.

It runs in wall time, because it uses sockets.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import HttpServer, route_all
from compute_sim_planes.certificates import make_server_files
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.time.sources import SeededIdentities, SystemClock


@dataclass(frozen=True, slots=True)
class ServedMilo:
    """A listening Milo, with the credentials of its administrator, also as a kubeconfig of the
    root.
    """

    milo: Milo
    url: str
    token: str
    authority: Path
    kubeconfig: Path


@asynccontextmanager
async def serve_milo(folder: Path, *projects: str) -> AsyncGenerator[ServedMilo]:
    """Serve a Milo with these projects Ready; TLS files and kubeconfig are written to `folder`."""
    token = secrets.token_urlsafe(16)
    parts = MiloParts(
        SystemClock(), SeededIdentities(random.SystemRandom()), tokens=Tokens({token: ADMIN})
    )
    milo = Milo(parts)
    files = make_server_files(folder)
    server = HttpServer(route_all(milo.router), tls=files.context())
    try:
        await milo.start()
        await server.start()
        for project in projects:
            await milo.add_project(project)
        kubeconfig = folder / "kubeconfig"
        context = Context("milo", server.url, token, files.authority.read_bytes())
        write_kubeconfig(kubeconfig, [context])
        yield ServedMilo(milo, server.url, token, files.authority, kubeconfig)
    finally:
        await milo.close()
        await server.close()
