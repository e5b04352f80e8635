"""Embedded planes and three operators, each as its own process.

Operators are the installed programs with the configuration of the ConfigMaps in `deploy/`; only
addresses and paths are overridden. All files are in one folder, and every process ends with this
one, even if this one is killed.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, Self

import aiohttp
import orjson
import yaml
from yarl import URL

from compute_api_types.wire import JsonObject, JsonValue
from e2e.backends.real import programs
from e2e.demo.backend import CELLS, PROJECT_NAMESPACES, DemoError
from e2e.demo.credentials import credential_path
from e2e.demo.embedded import MILO, READY
from e2e.harness.access.waiting import until
from e2e.harness.deploy.shipped import merge_over, shipped_configuration
from e2e.harness.processes import probes
from e2e.harness.processes.ports import LOOPBACK, Ports
from e2e.harness.processes.process import Command, ManagedProcess
from e2e.harness.processes.run_folder import RunFolder
from e2e.world.documents import a_grant
from e2e.world.kinds import GRANT
from e2e.world.objects import object_at, text_at
from e2e.world.port import (
    HOME,
    HUB,
    MANAGEMENT,
    Cell,
    PlaneRequest,
    PlaneResponse,
    ProjectNamespace,
)

TREE: Final = Path(__file__).parents[2]
APPLY: Final = "application/apply-patch+yaml"
TIMEOUT: Final = aiohttp.ClientTimeout(total=15)
# operations.md 2: requests in flight are finished or aborted within 8 s of SIGTERM.
GRACE: Final = timedelta(seconds=10)
SYSTEM: Final = "compute-system"
ProgressReport = Callable[[int, int, str], None]


class EmbeddedEnvironment:
    """The processes of one demo; `async with` starts and stops them."""

    pace = 1.0

    def __init__(
        self,
        report: ProgressReport,
        *,
        operators: Mapping[str, Path] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`operators` replace the installed programs; `environment` is added to their
        environment.
        """
        self._report = report
        self._operators = operators
        self._environment = environment or {}
        self._ports = Ports()
        self._processes: list[ManagedProcess] = []
        self._session: aiohttp.ClientSession | None = None
        self._announced: JsonObject = {}
        self._webhook = 0
        self.has_failed = False
        self.run = RunFolder.create()

    @property
    def project_namespaces(self) -> Sequence[ProjectNamespace]:
        return PROJECT_NAMESPACES

    @property
    def logs(self) -> Path:
        return self.run.path / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.run.kubeconfig

    def check(self) -> None:
        for process in self._processes:
            process.check()

    # --- life cycle ------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException as failure:
            if isinstance(failure, Exception):
                self.has_failed = True
                failure.add_note(f"logs: {self.logs}")
            await self.close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.has_failed = self.has_failed or (kind is not None and issubclass(kind, Exception))
        await self.close()

    async def _open(self) -> None:
        self._webhook = self._ports.reserve()
        await self._open_planes(self._webhook)
        operators = [self._configure_management(), *(self._configure_cell(cell) for cell in CELLS)]
        self._processes += operators
        await self._await_ready(operators)

    async def _open_planes(self, webhook: int) -> None:
        self._report(0, 4, "planes: Milo, hub, two cells")
        ready = self.run.path / READY

        async def announced() -> bool:
            return ready.exists()

        arguments = ("-m", "e2e.demo.embedded", str(self.run.path), str(webhook))
        environment = {"PYTHONPATH": str(TREE)}
        command = Command("planes", Path(sys.executable), arguments, environment)
        planes = ManagedProcess(command, self.run, announced)
        self._processes.append(planes)
        await planes.up()
        self._announced = json.loads(ready.read_text("utf-8"))
        trusted = ssl.create_default_context(cafile=str(self.run.pki("ca.crt")))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted), timeout=TIMEOUT
        )

    async def _await_ready(self, operators: Sequence[ManagedProcess]) -> None:
        tasks = [asyncio.create_task(operator.up()) for operator in operators]
        try:
            for at, finished in enumerate(asyncio.as_completed(tasks), start=1):
                self._report(at, 4, "operators: management, DFW, ORD")
                await finished
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stops the operators first, so that they can release their Leases; then planes and
        folder.
        """
        if self._session is not None:
            await self._session.close()
        planes, operators = self._processes[:1], self._processes[1:]
        await asyncio.gather(*(operator.stop(GRACE) for operator in operators))
        await asyncio.gather(*(process.stop() for process in planes))
        self._ports.close()
        self.run.remove(keep_logs=self.has_failed)

    # --- single operators ------------------------------------------------------------------------

    async def halt(self, operator: str) -> None:
        """Sends SIGTERM to an operator and waits until it has ended."""
        process = self._find(operator)
        if process is not None:
            await process.stop(GRACE)
            self._processes.remove(process)

    async def launch(self, operator: str, configuration: JsonObject) -> None:
        """Restarts an operator with a configuration that was applied, and the demo's addresses."""
        await self.halt(operator)
        if operator == MANAGEMENT:
            process = self._configure_management(configuration)
        else:
            cell = next(one for one in CELLS if one.name == operator)
            process = self._configure_cell(cell, configuration)
        self._processes.append(process)
        await process.up()

    def _find(self, operator: str) -> ManagedProcess | None:
        name = f"operator-{operator}"
        return next((one for one in self._processes if one.name == name), None)

    # --- configuration of operators --------------------------------------------------------------

    def _configure_management(self, given: JsonObject | None = None) -> ManagedProcess:
        shipped = given or shipped_configuration("management", "compute-management-config")
        webhook: JsonObject = {"host": LOOPBACK, "port": self._webhook, "tls": self._tls()}
        overrides: JsonObject = {
            "discovery": {"discoveryKubeconfigPath": self._credential(MANAGEMENT, MILO)},
            "federation": {"kubeconfigPath": self._credential(MANAGEMENT, HUB)},
            "webhookServer": webhook,
        }
        return self._configure(MANAGEMENT, programs.MANAGEMENT, merge_over(shipped, overrides))

    def _configure_cell(self, cell: Cell, given: JsonObject | None = None) -> ManagedProcess:
        shipped = given or shipped_configuration("cell", "compute-cell-config")
        overrides: JsonObject = {
            "cell": {"name": cell.name, "cityCode": cell.city},
            "federation": {"kubeconfigPath": self._credential(cell.name, HUB)},
            "quota": {"kubeconfigPath": self._credential(cell.name, MILO)},
        }
        return self._configure(cell.name, programs.CELL, merge_over(shipped, overrides))

    def _configure(self, operator: str, program: str, configuration: JsonObject) -> ManagedProcess:
        health, metrics = self._ports.reserve(), self._ports.reserve()
        overrides: JsonObject = {
            "metricsServer": {"bindAddress": f"{LOOPBACK}:{metrics}", "tls": self._tls()},
            "health": {"bindAddress": f"{LOOPBACK}:{health}"},
        }
        config = self.run.path / "operators" / f"{operator}.config.yaml"
        config.write_text(yaml.safe_dump(merge_over(configuration, overrides)), "utf-8")
        environment = {
            "KUBECONFIG": self._credential(operator, HOME),
            "POD_NAMESPACE": SYSTEM,
            "POD_NAME": operator,
            **self._environment,
        }
        path = (self._operators or programs.of_this_environment())[program]
        arguments = ("--server-config", str(config))
        command = Command(f"operator-{operator}", path, arguments, environment)
        ready = probes.http_answers(f"http://{LOOPBACK}:{health}/readyz")
        return ManagedProcess(command, self.run, ready)

    def _credential(self, operator: str, plane: str) -> str:
        return str(credential_path(self.run.path, operator, plane))

    def _tls(self) -> JsonObject:
        folder = str(self.run.path / "pki")
        return {"certDir": folder, "certName": "server.crt", "keyName": "server.key"}

    # --- requests --------------------------------------------------------------------------------

    async def send(self, plane: str, user: str, call: PlaneRequest) -> PlaneResponse:
        path = text_at(self._announced, "servers", plane)
        return await self._request(f"{path}{call.target}", user, call)

    async def set_grant(self, project: str, instances: int) -> None:
        """Replaces the default grant of new projects, so that the limit is exactly `instances`."""
        wanted = a_grant(project, instances)
        metadata = object_at(wanted, "metadata")
        target = GRANT.path(text_at(metadata, "namespace"), text_at(metadata, "name"))
        call = PlaneRequest("PATCH", f"{target}?fieldManager=demo&force=true", wanted, APPLY)

        async def granted() -> bool:
            return (await self.send(project, "admin", call)).status < 400

        await until(f"a grant for {project}", granted, check=self.check)

    async def cut_off(self, cell: Cell) -> None:
        await self._control(f"/demo/cells/{cell.name}/cut")

    async def bring_back(self, cell: Cell) -> None:
        await self._control(f"/demo/cells/{cell.name}/heal")

    async def _control(self, target: str) -> None:
        reply = await self._request(target, "demo", PlaneRequest("POST", target))
        if reply.status >= 400:
            raise DemoError(f"asking the planes for {target}: status {reply.status}")

    async def _request(self, target: str, user: str, call: PlaneRequest) -> PlaneResponse:
        if self._session is None:
            raise DemoError("asking a plane: the planes are not up")
        headers = {
            "Authorization": f"Bearer {text_at(self._announced, 'token')}",
            "Content-Type": call.media,
            "User-Agent": f"demo/{user}",
        }
        url = URL(text_at(self._announced, "url") + target, encoded=True)
        body = None if call.body is None else orjson.dumps(call.body)
        try:
            async with self._session.request(
                call.method, url, headers=headers, data=body
            ) as answer:
                raw = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as cause:
            self.check()  # an exited process is the better explanation
            raise DemoError(f"{call.method} {target}: {cause!r}") from cause
        parsed: JsonValue = orjson.loads(raw) if raw.startswith(b"{") else {}
        return PlaneResponse(answer.status, parsed if isinstance(parsed, dict) else {})
