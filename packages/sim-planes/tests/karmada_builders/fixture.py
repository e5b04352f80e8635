"""Operations of a contract test on a Karmada stack: over HTTP only, in its own namespace.

Members are shared by all tests of a run, so a test selects them by a label of its own and restores
them at the end. Waits use wall time.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from compute_sim_planes.api_server.testing import ServerAddress
from compute_sim_planes.client.errors import AlreadyExistsError
from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import find_condition, is_condition_true
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.karmada.kinds import (
    BINDINGS,
    CLUSTER_NAMESPACE,
    CLUSTERS,
    CUSTOMIZATIONS,
    EVENTS,
    NAMESPACES,
    POLICIES,
    SECRETS,
    WORKS,
)
from compute_sim_planes.karmada.names import derive_work_name
from karmada_builders.documents import (
    GADGETS,
    a_customization,
    a_gadget,
    a_namespace,
    a_policy,
)
from karmada_builders.stack import MEMBERS, KarmadaStack

_T = TypeVar("_T")
PATIENCE: Final = timedelta(seconds=30)
# Long enough for a forbidden action of Karmada, which takes less than half a second.
QUIET: Final = timedelta(seconds=1.5)
_POLL: Final = 0.02
_MARK: Final = "karmada-contract.example.com/"
WEB: Final = "web"
# Reports how many members reported, -1 for nil instead of a list, and the first one's status.
COUNTING: Final = """
function AggregateStatus(desiredObj, statusItems)
  desiredObj.metadata.managedFields = nil
  desiredObj.spec = nil
  local status = { items = -1 }
  if statusItems ~= nil then
    status.items = #statusItems
    if #statusItems > 0 and statusItems[1].status ~= nil then
      status.phase = statusItems[1].status.phase
    end
  end
  desiredObj.status = status
  return desiredObj
end
"""


class StackFixture:
    """One test's access to a stack."""

    def __init__(self, stack: KarmadaStack, hub: Client, members: Mapping[str, Client]) -> None:
        self.stack = stack
        self.hub = hub
        self.members = members
        suffix = secrets.token_hex(4)
        self.namespace = f"contract-{suffix}"
        self.mark = f"{_MARK}{suffix}"
        self._is_interpreted = False

    # objects -------------------------------------------------------------------------------------

    def policy(self, name: str = "policy", **spec: JsonValue) -> JsonObject:
        """A policy that sends Gadgets labelled DFW to the members selected by this test."""
        affinity: JsonObject = {"labelSelector": {"matchLabels": {self.mark: "here"}}}
        placement: JsonObject = {"clusterAffinity": affinity}
        return a_policy(self.namespace, name, {"placement": placement, **spec})

    def gadget(self, name: str = WEB, city: str = "DFW", size: int = 1) -> JsonObject:
        return a_gadget(self.namespace, name, city, size)

    async def make(self, *desired: JsonObject) -> None:
        """Create objects on the hub."""
        resources = {one.kind: one for one in (GADGETS, POLICIES, NAMESPACES)}
        for one in desired:
            await self.hub.create(resources[string_at(one, "kind")], one)

    async def edit(self, patch: JsonObject, name: str = WEB) -> None:
        await self.hub.patch(GADGETS, name, patch, namespace=self.namespace)

    async def template(self, name: str = WEB) -> JsonObject:
        existing = await self.hub.get(GADGETS, name, self.namespace)
        assert existing is not None, f"no {name!r} on the hub"
        return existing

    async def copy(self, member: str, name: str = WEB) -> JsonObject | None:
        return await self.members[member].get(GADGETS, name, self.namespace)

    async def binding(self, name: str = WEB) -> JsonObject | None:
        return await self.hub.get(BINDINGS, f"{name}-gadget", self.namespace)

    async def work(self, member: str, name: str = WEB) -> JsonObject | None:
        space = f"karmada-es-{member}"
        return await self.hub.get(WORKS, derive_work_name("Gadget", self.namespace, name), space)

    async def warnings(self, reason: str) -> dict[str, JsonObject]:
        """The Warning events with a reason in the test's namespace, by involved kind."""
        listing = await self.hub.list(EVENTS)
        return {
            string_at(event, "involvedObject", "kind"): event
            for event in listing.items
            if string_at(event, "involvedObject", "namespace") == self.namespace
            and (string_at(event, "type"), string_at(event, "reason")) == ("Warning", reason)
        }

    async def report(self, member: str, status: JsonObject, name: str = WEB) -> None:
        """Write the status of a copy, as a cell does."""
        patch: JsonObject = {"status": status}
        await self.members[member].patch(
            GADGETS, name, patch, namespace=self.namespace, subresource="status"
        )

    async def interpret(self, **scripts: str) -> None:
        """Install scripts for Gadgets until the test ends."""
        desired = a_customization("gadget", scripts)
        existing = await self.hub.get(CUSTOMIZATIONS, "gadget")
        if existing is not None:
            await self.hub.delete(CUSTOMIZATIONS, "gadget")
        await self.hub.create(CUSTOMIZATIONS, desired)
        self._is_interpreted = True
        await self.take_in()

    async def take_in(self) -> None:
        """Wait until Karmada has seen new objects, which is not observable."""
        await asyncio.sleep(0.5)

    # members -------------------------------------------------------------------------------------

    async def place(self, *members: str) -> None:
        """Label members for this test's policies."""
        for member in members:
            await self._label(member, "here")

    async def displace(self, member: str) -> None:
        await self._label(member, None)

    async def cluster(self, member: str) -> JsonObject | None:
        return await self.hub.get(CLUSTERS, member)

    async def is_ready(self, member: str) -> bool:
        existing = await self.cluster(member)
        return existing is not None and is_condition_true(existing, "Ready")

    async def take_away(self, member: str) -> None:
        """Make a member unreachable, and wait until it is not Ready."""
        await self._point(member, f"http://127.0.0.1:{free_port()}")
        await self.eventually(lambda: self.is_ready(member), lambda ready: not ready)

    async def bring_back(self, member: str) -> None:
        await self._point(member, self.stack.member(member).url)
        await self.eventually(lambda: self.is_ready(member), bool)

    async def join(self, member: str) -> None:
        """Create Secret and Cluster, and wait until the member is Ready."""
        address = self.stack.member(member)
        await self.set_token(member, address.token)
        await self.hub.create(CLUSTERS, cluster_of(member, address))
        await self.eventually(lambda: self.is_ready(member), bool)

    async def unjoin(self, member: str) -> None:
        await self.hub.delete(CLUSTERS, member)
        await self.gone(lambda: self.cluster(member), within=timedelta(seconds=60))

    async def set_token(self, member: str, token: str) -> None:
        address = self.stack.member(member)
        await self.hub.apply(SECRETS, secret_of(member, address, token))

    async def _label(self, member: str, value: str | None) -> None:
        await self.hub.patch(CLUSTERS, member, {"metadata": {"labels": {self.mark: value}}})

    async def _point(self, member: str, endpoint: str) -> None:
        await self.hub.patch(CLUSTERS, member, {"spec": {"apiEndpoint": endpoint}})

    # waiting -------------------------------------------------------------------------------------

    async def eventually(
        self,
        read: Callable[[], Awaitable[_T]],
        predicate: Callable[[_T], bool],
        within: timedelta = PATIENCE,
    ) -> _T:
        """Wait until a read returns the expected value."""
        until = time.monotonic() + within.total_seconds()
        while True:
            value = await read()
            if predicate(value):
                return value
            assert time.monotonic() < until, f"after {within} still: {value!r}"
            await asyncio.sleep(_POLL)

    async def arrives(
        self,
        read: Callable[[], Awaitable[JsonObject | None]],
        predicate: Callable[[JsonObject], bool] = bool,
    ) -> JsonObject:
        """Wait until an object exists and satisfies a predicate."""
        existing = await self.eventually(read, lambda one: one is not None and predicate(one))
        assert existing is not None
        return existing

    async def gone(
        self, read: Callable[[], Awaitable[object]], within: timedelta = PATIENCE
    ) -> None:
        await self.eventually(read, lambda value: value is None, within)

    async def stays(
        self, read: Callable[[], Awaitable[_T]], predicate: Callable[[_T], bool]
    ) -> None:
        """Check that a read keeps its value for a while."""
        until = time.monotonic() + QUIET.total_seconds()
        while time.monotonic() < until:
            value = await read()
            assert predicate(value), f"it changed: {value!r}"
            await asyncio.sleep(_POLL)

    # set-up and clean-up -------------------------------------------------------------------------

    async def set_up(self) -> None:
        for member in MEMBERS:
            if await self.cluster(member) is None:
                await self.join(member)
            await self.eventually(partial(self.is_ready, member), bool)
        await self.make(a_namespace(self.namespace))
        for member in MEMBERS:
            await self.arrives(partial(self.members[member].get, NAMESPACES, self.namespace))

    async def clean_up(self) -> None:
        """Undo the test's changes to shared objects."""
        for member in MEMBERS:
            existing = await self.cluster(member)
            if existing is None:
                continue
            if string_at(existing, "spec", "apiEndpoint") != self.stack.member(member).url:
                await self.bring_back(member)
            await self.displace(member)
        await self.hub.delete(NAMESPACES, self.namespace)
        if self._is_interpreted:
            await self.hub.delete(CUSTOMIZATIONS, "gadget")


@asynccontextmanager
async def open_fixture(stack: KarmadaStack) -> AsyncGenerator[StackFixture]:
    """Access to a stack, with a namespace that exists in both members."""
    async with AsyncExitStack() as cleanup:

        def connect(address: ServerAddress) -> Client:
            context = address.context()
            transport = HttpTransport(
                address.url,
                token=address.token,
                context=None if isinstance(context, bool) else context,
            )
            cleanup.push_async_callback(transport.close)
            return Client(transport, manager="contract")

        members = {name: connect(stack.member(name)) for name in MEMBERS}
        fixture = StackFixture(stack, connect(stack.hub), members)
        await _ensure_home(fixture.hub)
        await fixture.set_up()
        try:
            yield fixture
        finally:
            await fixture.clean_up()


async def _ensure_home(hub: Client) -> None:
    """Create the namespace of members' Secrets, if Karmada has not."""
    try:
        await hub.create(NAMESPACES, a_namespace(CLUSTER_NAMESPACE))
    except AlreadyExistsError:
        return


def cluster_of(member: str, address: ServerAddress) -> JsonObject:
    return {
        "apiVersion": CLUSTERS.api_version,
        "kind": CLUSTERS.kind,
        "metadata": {"name": member},
        "spec": {
            "syncMode": "Push",
            "id": member,
            "apiEndpoint": address.url,
            "secretRef": {"namespace": CLUSTER_NAMESPACE, "name": member},
        },
    }


def secret_of(member: str, address: ServerAddress, token: str) -> JsonObject:
    content = {"token": token.encode(), "caBundle": address.authority or b""}
    data: JsonObject = {
        name: base64.b64encode(value).decode() for name, value in content.items() if value
    }
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"namespace": CLUSTER_NAMESPACE, "name": member},
        "data": data,
    }


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_applied(work: JsonObject) -> bool:
    return is_condition_true(work, "Applied")


def is_refused(work: JsonObject) -> bool:
    return string_at(find_condition(work, "Applied"), "status") == "False"


def size_of(existing: JsonObject) -> JsonValue:
    return object_at(existing, "spec").get("size")


def has_size(size: int) -> Callable[[JsonObject], bool]:
    return lambda existing: size_of(existing) == size


def annotation_of(existing: JsonObject, name: str) -> str:
    return string_at(existing, "metadata", "annotations", name)


def clusters_of(binding: JsonObject) -> list[str]:
    return [string_at(one, "name") for one in objects_at(binding, "spec", "clusters")]
