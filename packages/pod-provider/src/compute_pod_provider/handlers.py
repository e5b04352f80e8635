"""Handlers of kopf: the one module that knows kopf, each handler a line or two.

kopf lists and watches, keeps indexes, runs one daemon per Instance and holds its own finalizer. It
stores nothing on Instances: with its defaults it would write three annotations on each of them, and
every one of those writes would wake the cell operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypeAlias, cast

import kopf
from typing_extensions import override

from compute_api_types import labels
from compute_operator_kit.core.clock import Clock
from compute_pod_provider import delays
from compute_pod_provider.cluster.login import Login
from compute_pod_provider.observe import Document, Indexes, derive_key
from compute_pod_provider.pod_facts import derive_controller_uid
from compute_pod_provider.provider import PodProvider
from compute_pod_provider.render import COMPONENT, MANAGED_BY

INSTANCES: Final = ("compute.datumapis.com", "v1alpha", "instances")
PODS: Final = ("", "v1", "pods")
BY_KEY: Final = "instances_by_key"
BY_CONTROLLER: Final = "pods_by_controller"
# Nine attempts in half a minute; then the object waits for its next event.
ERROR_BACKOFFS: Final = (0.5, 1, 2, 4, 5, 5, 5, 5)
INSTANT_EXIT: Final = 10.0  # seconds for a loop to end after its Instance was deleted

GetLogin: TypeAlias = Callable[[], Awaitable[Login]]


class NothingStored(kopf.ProgressStorage):
    """Progress of handlers in memory: nothing of it is written to an object."""

    @override
    def fetch(self, **_: object) -> None:
        return None

    @override
    def store(self, **_: object) -> None:
        pass

    @override
    def purge(self, **_: object) -> None:
        pass

    @override
    def touch(self, **_: object) -> None:
        pass

    @override
    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class AlwaysCurrent(kopf.DiffBaseStorage):
    """The last state handled is the present one: kopf detects no change and stores none."""

    @override
    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return self.build(body=body)

    @override
    def store(self, **_: object) -> None:
        pass


def build_settings() -> kopf.OperatorSettings:
    """Every setting by which kopf would write, guess or stop early, pinned."""
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = labels.POD_PROVIDER_FINALIZER
    settings.persistence.progress_storage = NothingStored()
    settings.persistence.diffbase_storage = AlwaysCurrent()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.networking.error_backoffs = ERROR_BACKOFFS
    settings.networking.request_timeout = 30
    settings.background.instant_exit_timeout = INSTANT_EXIT
    # One task per object with events: a limit would let stuck teardowns hold up new Instances.
    settings.queueing.worker_limit = None
    settings.watching.label_selectors[PODS[-1]] = f"{MANAGED_BY}={COMPONENT}"
    return settings


def build_registry(provider: PodProvider, clock: Clock, login: GetLogin) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    _register_login(registry, clock, login)
    _register_reads(registry, provider)
    _register_loops(registry, provider)
    return registry


def _register_login(registry: kopf.OperatorRegistry, clock: Clock, login: GetLogin) -> None:
    @kopf.on.login(registry=registry, retries=1_000_000, backoff=1)
    async def log_in(**_: object) -> kopf.ConnectionInfo:
        found = await login()
        return kopf.ConnectionInfo(
            server=found.server,
            ca_path=found.ca_path,
            certificate_path=found.certificate_path,
            private_key_path=found.private_key_path,
            scheme="Bearer" if found.token else None,
            token=found.token,
            expiration=clock.now() + delays.LOGIN,
        )


def _register_reads(registry: kopf.OperatorRegistry, provider: PodProvider) -> None:
    @kopf.index(*INSTANCES, registry=registry, id=BY_KEY)
    async def instances_by_key(body: kopf.Body, **_: object) -> dict[tuple[str, str], Document]:
        document = dict(body)
        key = derive_key(document)
        return {(key.namespace, key.name): document}

    @kopf.index(*PODS, registry=registry, id=BY_CONTROLLER)
    async def pods_by_controller(body: kopf.Body, **_: object) -> dict[str, Document]:
        return {derive_controller_uid(dict(body)): dict(body)}

    @kopf.on.event(*PODS, registry=registry)
    async def notice_pod(body: kopf.Body, **_: object) -> None:
        provider.notice(dict(body))

    @kopf.on.event(*INSTANCES, registry=registry)
    async def notice_instance(body: kopf.Body, **kwargs: object) -> None:
        provider.bind(_indexes(kwargs))
        provider.notice_instance(dict(body))


def _register_loops(registry: kopf.OperatorRegistry, provider: PodProvider) -> None:
    def is_guarded(body: kopf.Body, **_: object) -> bool:
        return provider.needs_finalizer(dict(body))

    @kopf.daemon(*INSTANCES, registry=registry, when=is_guarded, cancellation_timeout=INSTANT_EXIT)
    async def attend(body: kopf.Body, stopped: kopf.DaemonStopped, **kwargs: object) -> None:
        await provider.attend(dict(body), _indexes(kwargs), stopped)

    @kopf.on.delete(*INSTANCES, registry=registry, when=is_guarded)
    async def tear_down(body: kopf.Body, **_: object) -> None:
        await provider.tear_down(dict(body))


def _indexes(kwargs: Mapping[str, object]) -> Indexes:
    """kopf hands its indexes to handlers under their ids."""
    given = cast("Mapping[str, Any]", kwargs)  # kopf types them for no key and no value
    return Indexes(given[BY_KEY], given[BY_CONTROLLER])


async def run_kopf(
    provider: PodProvider, clock: Clock, login: GetLogin, stop: asyncio.Event
) -> None:
    """Runs until `stop` is set; the caller holds the Lease meanwhile. Raises kopf's own failure."""
    tasks = await kopf.spawn_tasks(
        registry=build_registry(provider, clock, login),
        settings=build_settings(),
        clusterwide=True,
        standalone=True,
        stop_flag=stop,
    )
    try:
        await _run_to_end(tasks)
    finally:
        stop.set()  # kopf's own wait for it, after a signal


async def _run_to_end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Until the first task of kopf ends, then ends the others and waits for them.

    Not `kopf.run_tasks`, which at its end cancels every task of the loop that is younger than kopf:
    renewals of the Lease and requests in flight would be among them. Tasks that these have started,
    workers and daemons, are ended by them; requests of kopf's first scan end by themselves.
    """
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
