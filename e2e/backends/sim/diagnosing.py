"""Runs `kubectl compute` on simulated planes as a user with the roles of `components/diagnostics`.

The command's own parser, reader and clock port are used; only the connections are simulated. A read
of a simulated plane never waits, so that the whole command runs between two steps of virtual time.
The simulated hub has no aggregated API: `clusters/<c>/proxy` is passed on here, as Karmada's does.
"""

from __future__ import annotations

import io
import re
import tempfile
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from compute_kubectl.__main__ import run
from compute_kubectl.commands.session import Ports
from compute_kubectl.commands.terminal import Terminal
from compute_kubectl.read.transport import Endpoint, WireAnswer, WireRequest
from compute_sim_planes.api_server.http.transport import read_body
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from e2e.backends.sim import rights
from e2e.backends.sim.planes import SimPlanes
from e2e.harness.deploy.diagnostics import a_role_binding, diagnostics_role
from e2e.world.port import DIAGNOSER, HUB, ROOT, CommandResult

_SUFFIX: Final = ".planes.test"
_PROXY: Final = re.compile(r"/apis/cluster\.karmada\.io/v1alpha1/clusters/([^/]+)/proxy(/.*)")
_T = TypeVar("_T")


async def run_diagnosis(
    planes: SimPlanes,
    words: Sequence[str],
    contexts: Sequence[str],
    *,
    user: str,
    cut_members: frozenset[str],
) -> CommandResult:
    """Runs the command with a context for each of the planes, the first one as current."""
    if user == DIAGNOSER:
        await _bind(planes, contexts)
    out = io.StringIO()
    transport = SimCommandTransport(planes, user, cut_members)
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        write_kubeconfig(
            kubeconfig, [Context(one, f"https://{one}{_SUFFIX}", "token") for one in contexts]
        )
        ports = Ports(transport=transport, clock=planes.clock.now)
        environ = {"KUBECONFIG": str(kubeconfig)}
        code = run(list(words), environ, terminal=Terminal(out, out), ports=ports)
    return CommandResult(code, out.getvalue())


async def _bind(planes: SimPlanes, contexts: Sequence[str]) -> None:
    """Applies the roles where they are to be bound: those of projects at Milo's root."""
    for name in contexts:
        is_project = name not in planes.planes
        role = diagnostics_role("project" if is_project else "hub" if name == HUB else "cell")
        plane = planes.at(ROOT if is_project else name)
        await apply_manifests(plane.connect(), [role, a_role_binding(role, DIAGNOSER)])


class SimCommandTransport:
    """The `Transport` of the command on simulated planes; a host name is the name of a plane."""

    def __init__(self, planes: SimPlanes, user: str, cut_members: frozenset[str]) -> None:
        self._planes = planes
        self._user = user
        self._cut_members = cut_members
        self._lock = threading.Lock()

    def exchange(self, endpoint: Endpoint, request: WireRequest, seconds: float) -> WireAnswer:
        del seconds
        name = (urlsplit(endpoint.server).hostname or "").removesuffix(_SUFFIX)
        target = request.target
        if name == HUB and (proxied := _PROXY.fullmatch(target)):
            name, target = proxied[1], proxied[2]
            if name in self._cut_members:
                return WireAnswer(503, "", b"{}")
        headers = {"Content-Type": request.content_type, "User-Agent": "kubectl-compute"}
        with self._lock:  # the command reads planes in several threads; a simulated one has one
            return finish(self._ask(name, target, request, headers))

    async def _ask(
        self, name: str, target: str, request: WireRequest, headers: Mapping[str, str]
    ) -> WireAnswer:
        reached = self._planes.reach(name, rights.user_named(self._user))
        answer = await reached.request(request.method, target, headers, request.content)
        return WireAnswer(answer.status, "", await read_body(answer))

    def close(self) -> None:
        """No connection is held open."""


def finish(work: Coroutine[object, object, _T]) -> _T:
    """The result of a coroutine that never waits; virtual time stands still meanwhile."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: _T = ended.value
        return result
    work.close()
    raise AssertionError("a simulated plane waits inside of a request of kubectl compute")
