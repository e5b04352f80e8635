"""Operators as processes of a real stack: started, stopped, killed, frozen, started again.

A crew keeps its replicas alive as a Deployment does. Each has a folder with what a pod would have
mounted: configuration as shipped with addresses of this stack laid over it, kubeconfigs, serving
certificates. Everything here runs backstage but `metric`, which whoever asks waits for.
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
from e2e.backends.shipped import lay_over
from e2e.objects import text_at
from e2e.planes import probes
from e2e.planes.errors import ProcessDiedError
from e2e.planes.plane import Plane
from e2e.planes.ports import LOOPBACK
from e2e.planes.process import Command, ManagedProcess
from e2e.planes.waiting import until

LOOK_EVERY: Final = timedelta(milliseconds=500)
RESTART_AFTER: Final = timedelta(seconds=1)
# operations.md 2: what is in flight is finished or aborted within 8 s of SIGTERM.
GRACE: Final = timedelta(seconds=15)
PATIENCE: Final = timedelta(seconds=120)
SCRAPE_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Fitting:
    """What an operator is started with, beside what a scenario asks for."""

    operator: str
    program: Path
    home: Plane
    home_kubeconfig: Path
    lease: str
    configuration: JsonObject  # as shipped, with the addresses of this stack
    certificates: Path  # a folder with tls.crt and tls.key
    webhook: int  # where the first replica answers reviews; fixed, because a link leads there


@dataclass(slots=True)
class Replica:
    """One process and where it listens; ports stay through restarts."""

    name: str
    folder: Path
    health: int
    metrics: int
    webhook: int
    process: ManagedProcess
    deaths: list[str] = field(default_factory=list[str])


class Crew:
    """All replicas of one operator."""

    def __init__(self, fitting: Fitting) -> None:
        self.fitting = fitting
        self._replicas: list[Replica] = []
        self._keeper: asyncio.Task[None] | None = None
        self._running = 0
        self._laid: JsonObject = {}
        self._trusted = ssl.create_default_context(cadata=fitting.home.site.pki.authority.decode())

    @property
    def is_up(self) -> bool:
        return self._running > 0

    @property
    def alive(self) -> list[Replica]:
        return self._replicas[: self._running]

    @property
    def arrangement(self) -> tuple[int, JsonObject]:
        """How many run, and what is laid over their configuration."""
        return self._running, self._laid

    @property
    def deaths(self) -> list[str]:
        """Ends that nobody asked for."""
        return [death for replica in self._replicas for death in replica.deaths]

    @property
    def pids(self) -> list[int]:
        return [replica.process.pid for replica in self.alive if replica.process.pid]

    @property
    def logs(self) -> list[Path]:
        return [replica.process.log for replica in self._replicas]

    # --- life ------------------------------------------------------------------------------------

    async def start(self, replicas: int = 1, laid: JsonObject | None = None) -> None:
        """Starts them and waits until each is ready."""
        if self._running:
            await self.stop()
        self.forgive()  # whoever ended before was of another arrangement
        self._laid = dict(laid or {})
        self._running = replicas
        for number in range(replicas):
            replica = self._replica(number)
            self._write_configuration(replica)
            replica.process.start()
        self._keeper = asyncio.create_task(self._keep(), name=f"keeper of {self.fitting.operator}")
        await self.ready()

    async def ready(self) -> None:
        for replica in self.alive:
            url = f"http://{LOOPBACK}:{replica.health}/readyz"
            await until(
                f"{replica.name} to be ready",
                probes.http_answers(url),
                check=self._complain_of_refusal,
                patience=PATIENCE,
            )

    async def stop(self) -> None:
        """As on SIGTERM; returns when they have ended."""
        await self._dismiss()
        leaving, self._running = self.alive, 0
        await asyncio.gather(*(replica.process.stop(GRACE) for replica in leaving))

    async def kill(self) -> None:
        await self._dismiss()
        leaving, self._running = self.alive, 0
        await asyncio.gather(*(replica.process.crash() for replica in leaving))

    def forgive(self) -> None:
        for replica in self._replicas:
            replica.deaths.clear()

    async def freeze_leader(self) -> None:
        (await self._leader()).process.freeze()

    def thaw(self) -> None:
        for replica in self.alive:
            replica.process.thaw()

    async def _leader(self) -> Replica:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{self.fitting.lease}"
        async with self.fitting.home.client() as home:
            holder = text_at(await home.get(path), "spec", "holderIdentity")
        for replica in self.alive:
            if holder.startswith(f"{replica.name}_"):
                return replica
        raise AssertionError(f"nobody of {self.fitting.operator} leads: the Lease names {holder!r}")

    # --- looking at them -------------------------------------------------------------------------

    def metric(self, name: str, labels: Mapping[str, str]) -> float:
        """The sum over replicas of the series with these labels; histograms count observations."""
        return sum(sum_of(self._scrape(replica), name, labels) for replica in self.alive)

    def _scrape(self, replica: Replica) -> str:
        token = self.fitting.home.site.tokens.of(self.fitting.home.name, SCRAPER.user).token
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

    # --- keeping them ----------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Starts a process again that ended by itself, as one that lost its Lease does."""
        while True:
            await asyncio.sleep(LOOK_EVERY.total_seconds())
            for replica in self.alive:
                try:
                    replica.process.check()
                except ProcessDiedError as death:
                    replica.deaths.append(str(death))
                    await asyncio.sleep(RESTART_AFTER.total_seconds())
                    replica.process.start()

    def _complain_of_refusal(self) -> None:
        """While the first start is awaited, an end is told at once: it is a refused configuration
        more often than not.
        """
        if self.deaths:
            raise AssertionError(self.deaths[-1])

    async def _dismiss(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait({keeper})

    # --- building --------------------------------------------------------------------------------

    def _replica(self, number: int) -> Replica:
        while len(self._replicas) <= number:
            self._replicas.append(self._build(len(self._replicas)))
        return self._replicas[number]

    def _build(self, number: int) -> Replica:
        fitting, site = self.fitting, self.fitting.home.site
        name = f"{fitting.lease}-{fitting.operator}-{number}"
        folder = site.ground.run.path / "operators" / name
        folder.mkdir(parents=True)
        config = folder / "config.yaml"
        environment = {
            "KUBECONFIG": str(fitting.home_kubeconfig),
            "POD_NAMESPACE": SYSTEM,
            "POD_NAME": name,
        }
        command = Command(name, fitting.program, ("--server-config", str(config)), environment)
        health, metrics = site.ports.reserve(), site.ports.reserve()
        webhook = fitting.webhook if number == 0 else site.ports.reserve()
        process = ManagedProcess(
            command, site.ground.run, probes.http_answers(f"http://{LOOPBACK}:{health}/readyz")
        )
        return Replica(name, folder, health, metrics, webhook, process)

    def _write_configuration(self, replica: Replica) -> None:
        certificates: JsonObject = {"certDir": str(self.fitting.certificates)}
        own: JsonObject = {
            "metricsServer": {
                "bindAddress": f"{LOOPBACK}:{replica.metrics}",
                "tls": {**certificates},
            },
            "health": {"bindAddress": f"{LOOPBACK}:{replica.health}"},
        }
        if "webhookServer" in self.fitting.configuration:
            own["webhookServer"] = {
                "host": LOOPBACK,
                "port": replica.webhook,
                "tls": {**certificates},
            }
        document = lay_over(lay_over(self.fitting.configuration, own), self._laid)
        (replica.folder / "config.yaml").write_text(yaml.safe_dump(document), "utf-8")
