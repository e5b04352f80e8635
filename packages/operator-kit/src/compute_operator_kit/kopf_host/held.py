"""How kopf is held: its settings, its credentials, and what it is told instead of finding it out.

The reasons stand in the package's docstring. Nothing here starts or stops anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import kopf

# kopf takes both of these from whoever embeds it, yet exports neither; a test fails when they move.
from kopf._cogs.structs.references import Insights
from kopf._core.reactor.inventory import ResourceMemories, ResourceMemory
from typing_extensions import override

from compute_operator_kit.backoff import PLANE_BACKOFF
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.errors import InvariantError
from compute_operator_kit.keys import Kind

REQUEST_TIMEOUT: Final = timedelta(seconds=10)
LONG_ENOUGH: Final = timedelta(minutes=1)  # after so long without trouble, back-off starts anew


class Login:
    """kopf's login handler: our credentials as they are on disk now.

    kopf refuses credentials it has seen fail, ends, and takes admission down with it. Each login
    therefore differs by its priority, which orders handlers and has one here; logins that follow
    each other quickly wait.
    """

    def __init__(self, credentials: FileCredentials, clock: Clock, random: Random) -> None:
        self._credentials = credentials
        self._clock = clock
        self._random = random
        self._count = 0
        self._quick = 0
        self._last = clock.monotonic() - LONG_ENOUGH

    async def log_in(self, **_: object) -> kopf.ConnectionInfo:
        now = self._clock.monotonic()
        self._quick = self._quick + 1 if now - self._last < LONG_ENOUGH else 0
        if self._quick:
            delay = PLANE_BACKOFF.delay(self._quick, self._random.random())
            await asyncio.sleep(delay.total_seconds())
        self._last = self._clock.monotonic()
        self._count += 1
        await self._credentials.refresh()
        return self._describe()

    def _describe(self) -> kopf.ConnectionInfo:
        found = self._credentials.material
        identity = found.identity
        return kopf.ConnectionInfo(
            server=self._credentials.server,
            ca_data=found.ca,
            scheme="Bearer" if found.token else None,
            token=found.token or None,
            certificate_data=identity.certificate if identity else None,
            private_key_data=identity.key if identity else None,
            default_namespace=self._credentials.namespace or None,
            priority=self._count,
        )


class _Patience:
    """Endless waits between attempts: kopf iterates it anew for each request and never gives one
    up.
    """

    def __iter__(self) -> Iterator[float]:
        attempt = 0
        while True:
            attempt += 1
            yield PLANE_BACKOFF.delay(attempt, 0).total_seconds()


def build_settings(server: kopf.WebhookServerProtocol | None) -> kopf.OperatorSettings:
    """kopf's settings, pinned: nothing is posted, peered, scanned, managed or killed."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = None
    settings.networking.request_timeout = REQUEST_TIMEOUT.total_seconds()
    settings.networking.connect_timeout = REQUEST_TIMEOUT.total_seconds()
    settings.networking.error_backoffs = _Patience()
    settings.admission.managed = None
    settings.admission.server = server
    return settings


def check_registry(registry: kopf.OperatorRegistry) -> None:
    """Refuses handlers that would make kopf watch or write objects: that is the hot path's work."""
    for name in ("_watching", "_changing", "_spawning", "_indexing"):
        if getattr(registry, name).get_all_handlers():
            raise InvariantError(f"starting the front door: kopf handlers in {name.lstrip('_')}")


class _Told(set[kopf.Resource]):
    """A set that kopf's discovery cannot change."""

    @override
    def difference_update(self, *_: object) -> None:
        pass

    @override
    def update(self, *_: object) -> None:
        pass


def told_insights(admits: Sequence[Kind]) -> Insights:
    """What kopf would otherwise discover on the home plane before it opens its port."""
    told = _Told(kopf.Resource(kind.group, kind.version, kind.plural, kind.kind) for kind in admits)
    insights = Insights(webhook_resources=told)
    insights.ready_resources.set()
    return insights


class NoMemories(ResourceMemories):
    """Forgets at once: kopf keeps a record per object it admits until it sees it deleted, which it
    never does here.
    """

    @override
    async def recall(self, *args: Any, **kwargs: Any) -> ResourceMemory:
        return await super().recall(*args, **(kwargs | {"ephemeral": True}))
