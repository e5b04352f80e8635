"""`/healthz` and `/readyz`: named checks, asked when somebody asks, answered as Kubernetes' own
servers do.

Liveness is about this process alone; readiness about what it needs to begin. No check may look at
the hub, the quota plane or a single project: their being away is told by metrics and must not
restart or hide a pod. Checks answer at once, from memory, and decide nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from aiohttp import web

from compute_operator_kit.http_server import HttpServer
from compute_operator_kit.printable import cut_to_bytes, escape_unprintable
from compute_operator_kit.settings import Bind

# None when all is well, else what is missing, in a few words.
Check: TypeAlias = Callable[[], str | None]


class Checks:
    """The checks behind one endpoint, by name; green when all of them are."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        self._checks[name] = check

    def ask(self) -> tuple[bool, str]:
        """Whether all are green, and one line for each."""
        findings = {name: check() for name, check in self._checks.items()}
        lines = [_describe(name, finding) for name, finding in findings.items()]
        is_green = not any(findings.values())
        verdict = "passed" if is_green else "failed"
        return is_green, "\n".join([*lines, f"check {verdict}", ""])


def _describe(name: str, finding: str | None) -> str:
    if not finding:
        return f"[+]{name} ok"
    return f"[-]{name} failed: {cut_to_bytes(escape_unprintable(finding), 256)}"


class ProbeServer:
    """Serves liveness and readiness; needs no plane to do so."""

    def __init__(self, bind: Bind) -> None:
        self.healthy = Checks()
        self.ready = Checks()
        self._server = HttpServer(bind, {"/healthz": self._healthz, "/readyz": self._readyz})

    @property
    def port(self) -> int:
        return self._server.port

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()

    async def _healthz(self, _: web.BaseRequest) -> web.Response:
        return _answer(self.healthy)

    async def _readyz(self, _: web.BaseRequest) -> web.Response:
        return _answer(self.ready)


def _answer(checks: Checks) -> web.Response:
    is_green, text = checks.ask()
    return web.Response(text=text, status=200 if is_green else 503)
