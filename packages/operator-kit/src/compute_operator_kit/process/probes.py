"""`/healthz` and `/readyz`: named checks with a response like that of a Kubernetes API server.

Liveness covers this process alone, readiness what it needs to begin. No check may depend on the
hub, the quota plane or a project: an outage there is reported by metrics and must not restart a pod
or take it out of its Service. Checks read memory only and return at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from aiohttp import web

from compute_operator_kit.config.settings import Bind
from compute_operator_kit.core.text import cut_to_bytes, escape_unprintable
from compute_operator_kit.process.http_server import HttpServer

# None when the check passes, else what is missing, in a few words.
Check: TypeAlias = Callable[[], str | None]


class Checks:
    """The checks of one endpoint, by name; it passes when all of them do."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        self._checks[name] = check

    def run(self) -> tuple[bool, str]:
        """Whether all pass, and one line for each."""
        failures = {name: check() for name, check in self._checks.items()}
        lines = [_describe(name, failure) for name, failure in failures.items()]
        has_passed = not any(failures.values())
        result = "passed" if has_passed else "failed"
        return has_passed, "\n".join([*lines, f"check {result}", ""])


def _describe(name: str, failure: str | None) -> str:
    if not failure:
        return f"[+]{name} ok"
    return f"[-]{name} failed: {cut_to_bytes(escape_unprintable(failure), 256)}"


class ProbeServer:
    """Serves liveness and readiness; needs no plane."""

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
    has_passed, text = checks.run()
    return web.Response(text=text, status=200 if has_passed else 503)
