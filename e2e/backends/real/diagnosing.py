"""Runs `kubectl compute` with the kubectl of the planes, as the users of a platform would.

kubectl finds `kubectl-compute` on the PATH. Users reach projects through the gateway, hub and cells
directly; the roles of `components/diagnostics` are bound once and stay, since their user does
nothing else.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from e2e.backends.real.environment import RealEnvironment
from e2e.harness.access.kubeconfig import Context, render_kubeconfig
from e2e.harness.deploy.diagnostics import Side, a_role_binding, diagnostics_role
from e2e.harness.errors import PlanesError
from e2e.harness.planes.identities import ADMIN
from e2e.harness.stack.kubectl import find_kubectl
from e2e.world.port import DIAGNOSER, HUB, ROOT, CommandResult

TIMEOUT: Final = 60
# Projects cache a refusal for a second (neighbours.md 4.5).
REFUSAL_CACHE: Final = 1.5


async def run_diagnosis(
    environment: RealEnvironment, words: Sequence[str], contexts: Sequence[str], user: str
) -> CommandResult:
    """Runs the command with a context for each of the planes, the first one as current."""
    if user == DIAGNOSER:
        await _bind(environment, contexts)
    identity = DIAGNOSER if user == DIAGNOSER else ADMIN.user
    text = render_kubeconfig([_context(environment, one, identity) for one in contexts])
    # In a thread, so that the scenario's loop is not blocked while the program runs.
    return await asyncio.to_thread(_run, text, words)


def _is_project(environment: RealEnvironment, name: str) -> bool:
    return name in {plane.name for plane in environment.planes.milo.projects}


def _context(environment: RealEnvironment, name: str, user: str) -> Context:
    planes = environment.planes
    if _is_project(environment, name):
        # Credentials are the root's: Milo has no others.
        root = planes.milo.root
        token, server = root.runtime.tokens.of(root.name, user), planes.milo.server(name)
        return Context(name, server, root.runtime.pki.authority, token)
    plane = planes.plane(name)
    return Context(
        name, plane.server, plane.runtime.pki.authority, plane.runtime.tokens.of(name, user)
    )


async def _bind(environment: RealEnvironment, contexts: Sequence[str]) -> None:
    is_new = False
    for name in contexts:
        is_project = _is_project(environment, name)
        side: Side = "project" if is_project else "hub" if name == HUB else "cell"
        role = diagnostics_role(side)
        binding = a_role_binding(role, DIAGNOSER)
        async with environment.planes.plane(ROOT if is_project else name).client() as client:
            if await client.find(await client.path_of(binding)) is None:
                is_new = True
            await client.apply(role)
            await client.apply(binding)
    if is_new:
        await asyncio.sleep(REFUSAL_CACHE)


def _run(kubeconfig: str, words: Sequence[str]) -> CommandResult:
    kubectl = find_kubectl()
    program = Path(sys.executable).parent / "kubectl-compute"
    if kubectl is None or not program.exists():
        raise PlanesError(
            f"running kubectl compute: kubectl is {kubectl}, the command {program}",
            remedy="run `./dev planes`, and install the packages of this repository",
        )
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(kubeconfig, "utf-8")
        path = os.pathsep.join((str(program.parent), os.environ.get("PATH", os.defpath)))
        done = subprocess.run(
            [str(kubectl), "compute", *words],
            env={"PATH": path, "HOME": home, "KUBECONFIG": str(file)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    return CommandResult(done.returncode, done.stdout + done.stderr)
