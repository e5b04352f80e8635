"""A simulated Milo behind a real port, for tests that hold programs with their own HTTP to it.

Lives in wall time, since sockets do.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from compute_sim_planes.api_server.http_server import HttpServer, route_all
from compute_sim_planes.api_server.identity import ADMIN, Tokens
from compute_sim_planes.api_server.sources import SeededIdentities, SystemClock
from compute_sim_planes.certificates import make_server_files
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo


@dataclass(frozen=True, slots=True)
class ServedMilo:
    """A Milo that listens, and what its administrator needs, also as a kubeconfig of the root."""

    milo: Milo
    url: str
    token: str
    authority: Path
    kubeconfig: Path


@asynccontextmanager
async def serve_milo(folder: Path, *projects: str) -> AsyncGenerator[ServedMilo]:
    """Serves a Milo with these projects Ready; its files (TLS, kubeconfig) go into `folder`."""
    token = secrets.token_urlsafe(16)
    parts = MiloParts(
        SystemClock(), SeededIdentities(random.SystemRandom()), tokens=Tokens({token: ADMIN})
    )
    milo = Milo(parts)
    files = make_server_files(folder)
    server = HttpServer(route_all(milo.front), tls=files.context())
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
