"""Operators as processes of a real stack: started, stopped, killed, frozen, restarted.

`ProcessReplicas` restarts a replica as a Deployment does. Each replica has a folder with the files
that a pod would mount: the shipped configuration with the addresses of this stack, kubeconfigs and
serving certificates. Everything runs on the background loop except `metric`, which blocks.
"""

from __future__ import annotations

import asyncio
import http
import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import yaml

from compute_api_types.wire import JsonObject
from e2e.backends.real.installing import SCRAPER, SYSTEM
from e2e.backends.real.metrics import sum_of
from e2e.harness.access.waiting import until
from e2e.harness.deploy.shipped import merge_over
from e2e.harness.errors import ProcessDiedError
from e2e.harness.planes.plane import RealPlane
from e2e.harness.processes import probes
from e2e.harness.processes.ports import LOOPBACK
from e2e.harness.processes.process import Command, ManagedProcess
from e2e.world.objects import text_at

POLL_INTERVAL: Final = timedelta(milliseconds=500)
RESTART_AFTER: Final = timedelta(seconds=1)
# operations.md 2: requests in flight are finished or aborted within 8 s of SIGTERM.
GRACE: Final = timedelta(seconds=15)
PATIENCE: Final = timedelta(seconds=120)
SCRAPE_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """An operator's executable, files and addresses, independent of the scenario."""

    operator: str
    program: Path
    home: RealPlane
    home_kubeconfig: Path
    lease: str
    configuration: JsonObject  # as shipped, with the addresses of this stack
    certificates: Path  # a folder with tls.crt and tls.key
    webhook: int  # webhook port of the first replica; fixed, because a link points to it


@dataclass(slots=True)
class Replica:
    """One process with its ports, which stay the same over restarts."""

    name: str
    folder: Path
    health: int
    metrics: int
    webhook: int
    process: ManagedProcess
    deaths: list[str] = field(default_factory=list[str])


class ProcessReplicas:
    """All replicas of one operator."""

    def __init__(self, config: ReplicaConfig) -> None:
        self.config = config
        self._replicas: list[Replica] = []
        self._restarter: asyncio.Task[None] | None = None
        self._running = 0
        self._overrides: JsonObject = {}
        self._trusted = ssl.create_default_context(
            cadata=config.home.runtime.pki.authority.decode()
        )

    @property
    def is_up(self) -> bool:
        return self._running > 0

    @property
    def alive(self) -> list[Replica]:
        return self._replicas[: self._running]

    @property
    def arrangement(self) -> tuple[int, JsonObject]:
        """Number of replicas, and the settings merged over their configuration."""
        return self._running, self._overrides

    @property
    def deaths(self) -> list[str]:
        """Exits that no scenario caused."""
        return [death for replica in self._replicas for death in replica.deaths]

    @property
    def pids(self) -> list[int]:
        return [replica.process.pid for replica in self.alive if replica.process.pid]

    @property
    def logs(self) -> list[Path]:
        return [replica.process.log for replica in self._replicas]

    # --- life cycle ------------------------------------------------------------------------------

    async def start(self, replicas: int = 1, overrides: JsonObject | None = None) -> None:
        """Starts the replicas and waits until each is ready."""
        if self._running:
            await self.stop()
        self.expect_restarts()  # earlier exits belong to another arrangement
        self._overrides = dict(overrides or {})
        self._running = replicas
        for number in range(replicas):
            replica = self._replica(number)
            self._write_configuration(replica)
            replica.process.start()
        self._restarter = asyncio.create_task(
            self._restart_exited(), name=f"restarter of {self.config.operator}"
        )
        await self.ready()

    async def ready(self) -> None:
        for replica in self.alive:
            url = f"http://{LOOPBACK}:{replica.health}/readyz"
            await until(
                f"{replica.name} to be ready",
                probes.http_answers(url),
                check=self._raise_on_exit,
                patience=PATIENCE,
            )

    async def stop(self) -> None:
        """Sends SIGTERM and waits until they have ended."""
        await self._stop_restarter()
        leaving, self._running = self.alive, 0
        await asyncio.gather(*(replica.process.stop(GRACE) for replica in leaving))

    async def kill(self) -> None:
        await self._stop_restarter()
        leaving, self._running = self.alive, 0
        await asyncio.gather(*(replica.process.crash() for replica in leaving))

    def expect_restarts(self) -> None:
        for replica in self._replicas:
            replica.deaths.clear()

    async def freeze_leader(self) -> None:
        (await self._leader()).process.freeze()

    def thaw(self) -> None:
        for replica in self.alive:
            replica.process.thaw()

    async def _leader(self) -> Replica:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{self.config.lease}"
        async with self.config.home.client() as home:
            holder = text_at(await home.get(path), "spec", "holderIdentity")
        for replica in self.alive:
            if holder.startswith(f"{replica.name}_"):
                return replica
        raise AssertionError(
            f"no replica of {self.config.operator} leads: the Lease names {holder!r}"
        )

    # --- metrics ---------------------------------------------------------------------------------

    def metric(self, name: str, labels: Mapping[str, str]) -> float:
        """The sum over replicas of the series with these labels; histograms count observations."""
        return sum(sum_of(self._scrape(replica), name, labels) for replica in self.alive)

    def _scrape(self, replica: Replica) -> str:
        token = self.config.home.runtime.tokens.of(self.config.home.name, SCRAPER.user).token
        connection = http.client.HTTPSConnection(
            LOOPBACK, replica.metrics, context=self._trusted, timeout=SCRAPE_SECONDS
        )
        try:
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError as cause:
            raise AssertionError(f"reading metrics of {replica.name}: {cause}") from cause
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise AssertionError(f"reading metrics of {replica.name}: {answer.status} {text}")
        return text

    # --- restarts --------------------------------------------------------------------------------

    async def _restart_exited(self) -> None:
        """Restarts a process that exited by itself, for example after it lost its Lease."""
        while True:
            await asyncio.sleep(POLL_INTERVAL.total_seconds())
            for replica in self.alive:
                try:
                    replica.process.check()
                except ProcessDiedError as death:
                    replica.deaths.append(str(death))
                    await asyncio.sleep(RESTART_AFTER.total_seconds())
                    replica.process.start()

    def _raise_on_exit(self) -> None:
        """Fails at once if a process exits while its start is awaited, usually because its
        configuration was refused.
        """
        if self.deaths:
            raise AssertionError(self.deaths[-1])

    async def _stop_restarter(self) -> None:
        restarter, self._restarter = self._restarter, None
        if restarter is not None:
            restarter.cancel()
            await asyncio.wait({restarter})

    # --- building --------------------------------------------------------------------------------

    def _replica(self, number: int) -> Replica:
        while len(self._replicas) <= number:
            self._replicas.append(self._build(len(self._replicas)))
        return self._replicas[number]

    def _build(self, number: int) -> Replica:
        config, runtime = self.config, self.config.home.runtime
        name = f"{config.lease}-{config.operator}-{number}"
        folder = runtime.settings.run.path / "operators" / name
        folder.mkdir(parents=True)
        config_file = folder / "config.yaml"
        environment = {
            "KUBECONFIG": str(config.home_kubeconfig),
            "POD_NAMESPACE": SYSTEM,
            "POD_NAME": name,
        }
        command = Command(name, config.program, ("--server-config", str(config_file)), environment)
        health, metrics = runtime.ports.reserve(), runtime.ports.reserve()
        webhook = config.webhook if number == 0 else runtime.ports.reserve()
        process = ManagedProcess(
            command, runtime.settings.run, probes.http_answers(f"http://{LOOPBACK}:{health}/readyz")
        )
        return Replica(name, folder, health, metrics, webhook, process)

    def _write_configuration(self, replica: Replica) -> None:
        certificates: JsonObject = {"certDir": str(self.config.certificates)}
        own: JsonObject = {
            "metricsServer": {
                "bindAddress": f"{LOOPBACK}:{replica.metrics}",
                "tls": {**certificates},
            },
            "health": {"bindAddress": f"{LOOPBACK}:{replica.health}"},
        }
        if "webhookServer" in self.config.configuration:
            own["webhookServer"] = {
                "host": LOOPBACK,
                "port": replica.webhook,
                "tls": {**certificates},
            }
        document = merge_over(merge_over(self.config.configuration, own), self._overrides)
        (replica.folder / "config.yaml").write_text(yaml.safe_dump(document), "utf-8")
