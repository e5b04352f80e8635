"""What a contract test does with a stack: over HTTP only, in a namespace of its own.

Members are shared by all tests of a run, so a test means them by a label that nobody else uses, and
leaves them as it found them. Time is the wall's.
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
from compute_sim_planes.client import Client
from compute_sim_planes.client_errors import AlreadyExistsError
from compute_sim_planes.client_http import HttpTransport
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
from compute_sim_planes.milo.conditions import find_condition, holds
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
# Long enough for Karmada to do what it must not: everything takes it less than half a second.
QUIET: Final = timedelta(seconds=1.5)
_POLL: Final = 0.02
_MARK: Final = "karmada-contract.example.com/"
WEB: Final = "web"
# Says how many members reported, -1 for a list that is none, and what the first of them said.
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


class Hands:
    """One test's grip on a stack."""

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
        """Gadgets labelled DFW go to the members this test has marked."""
        affinity: JsonObject = {"labelSelector": {"matchLabels": {self.mark: "here"}}}
        placement: JsonObject = {"clusterAffinity": affinity}
        return a_policy(self.namespace, name, {"placement": placement, **spec})

    def gadget(self, name: str = WEB, city: str = "DFW", size: int = 1) -> JsonObject:
        return a_gadget(self.namespace, name, city, size)

    async def make(self, *wanted: JsonObject) -> None:
        """Creates objects on the hub."""
        resources = {one.kind: one for one in (GADGETS, POLICIES, NAMESPACES)}
        for one in wanted:
            await self.hub.create(resources[string_at(one, "kind")], one)

    async def edit(self, patch: JsonObject, name: str = WEB) -> None:
        await self.hub.patch(GADGETS, name, patch, namespace=self.namespace)

    async def template(self, name: str = WEB) -> JsonObject:
        found = await self.hub.get(GADGETS, name, self.namespace)
        assert found is not None, f"no {name!r} on the hub"
        return found

    async def copy(self, member: str, name: str = WEB) -> JsonObject | None:
        return await self.members[member].get(GADGETS, name, self.namespace)

    async def binding(self, name: str = WEB) -> JsonObject | None:
        return await self.hub.get(BINDINGS, f"{name}-gadget", self.namespace)

    async def work(self, member: str, name: str = WEB) -> JsonObject | None:
        space = f"karmada-es-{member}"
        return await self.hub.get(WORKS, derive_work_name("Gadget", self.namespace, name), space)

    async def warnings(self, reason: str) -> dict[str, JsonObject]:
        """The Warning events of a reason in the test's namespace, by the kind they are about."""
        listing = await self.hub.list(EVENTS)
        return {
            string_at(event, "involvedObject", "kind"): event
            for event in listing.items
            if string_at(event, "involvedObject", "namespace") == self.namespace
            and (string_at(event, "type"), string_at(event, "reason")) == ("Warning", reason)
        }

    async def report(self, member: str, status: JsonObject, name: str = WEB) -> None:
        """As a cell tells how its copy is doing."""
        patch: JsonObject = {"status": status}
        await self.members[member].patch(
            GADGETS, name, patch, namespace=self.namespace, subresource="status"
        )

    async def interpret(self, **scripts: str) -> None:
        """Gives the hub these scripts for Gadgets, until the test ends."""
        wanted = a_customization("gadget", scripts)
        found = await self.hub.get(CUSTOMIZATIONS, "gadget")
        if found is not None:
            await self.hub.delete(CUSTOMIZATIONS, "gadget")
        await self.hub.create(CUSTOMIZATIONS, wanted)
        self._is_interpreted = True
        await self.take_in()

    async def take_in(self) -> None:
        """Until Karmada has heard of what was made: it tells nobody when it has."""
        await asyncio.sleep(0.5)

    # members -------------------------------------------------------------------------------------

    async def place(self, *members: str) -> None:
        """Marks members: this test's policies mean them."""
        for member in members:
            await self._label(member, "here")

    async def displace(self, member: str) -> None:
        await self._label(member, None)

    async def cluster(self, member: str) -> JsonObject | None:
        return await self.hub.get(CLUSTERS, member)

    async def is_ready(self, member: str) -> bool:
        found = await self.cluster(member)
        return found is not None and holds(found, "Ready")

    async def take_away(self, member: str) -> None:
        """Karmada does not reach a member any more, and knows it."""
        await self._point(member, f"http://127.0.0.1:{free_port()}")
        await self.eventually(lambda: self.is_ready(member), lambda ready: not ready)

    async def bring_back(self, member: str) -> None:
        await self._point(member, self.stack.member(member).url)
        await self.eventually(lambda: self.is_ready(member), bool)

    async def join(self, member: str) -> None:
        """By hand: a Secret, then the Cluster; back when it is Ready."""
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
        look: Callable[[], Awaitable[_T]],
        is_so: Callable[[_T], bool],
        within: timedelta = PATIENCE,
    ) -> _T:
        """What a look shows once it is as it should be."""
        until = time.monotonic() + within.total_seconds()
        while True:
            found = await look()
            if is_so(found):
                return found
            assert time.monotonic() < until, f"after {within} still: {found!r}"
            await asyncio.sleep(_POLL)

    async def arrives(
        self,
        look: Callable[[], Awaitable[JsonObject | None]],
        is_so: Callable[[JsonObject], bool] = bool,
    ) -> JsonObject:
        """An object once it exists and is as it should be."""
        found = await self.eventually(look, lambda one: one is not None and is_so(one))
        assert found is not None
        return found

    async def gone(
        self, look: Callable[[], Awaitable[object]], within: timedelta = PATIENCE
    ) -> None:
        await self.eventually(look, lambda found: found is None, within)

    async def stays(self, look: Callable[[], Awaitable[_T]], is_so: Callable[[_T], bool]) -> None:
        """What a look shows does not change for a while."""
        until = time.monotonic() + QUIET.total_seconds()
        while time.monotonic() < until:
            found = await look()
            assert is_so(found), f"it changed: {found!r}"
            await asyncio.sleep(_POLL)

    # life ----------------------------------------------------------------------------------------

    async def set_up(self) -> None:
        for member in MEMBERS:
            if await self.cluster(member) is None:
                await self.join(member)
            await self.eventually(partial(self.is_ready, member), bool)
        await self.make(a_namespace(self.namespace))
        for member in MEMBERS:
            await self.arrives(partial(self.members[member].get, NAMESPACES, self.namespace))

    async def tidy_up(self) -> None:
        """Whatever a test did to what is shared is undone."""
        for member in MEMBERS:
            found = await self.cluster(member)
            if found is None:
                continue
            if string_at(found, "spec", "apiEndpoint") != self.stack.member(member).url:
                await self.bring_back(member)
            await self.displace(member)
        await self.hub.delete(NAMESPACES, self.namespace)
        if self._is_interpreted:
            await self.hub.delete(CUSTOMIZATIONS, "gadget")


@asynccontextmanager
async def take_hold(stack: KarmadaStack) -> AsyncGenerator[Hands]:
    """Hands on a stack, with a namespace that has reached both members."""
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
        hands = Hands(stack, connect(stack.hub), members)
        await _ensure_home(hands.hub)
        await hands.set_up()
        try:
            yield hands
        finally:
            await hands.tidy_up()


async def _ensure_home(hub: Client) -> None:
    """The namespace of members' Secrets, should Karmada not have made it yet."""
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
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_applied(work: JsonObject) -> bool:
    return holds(work, "Applied")


def is_refused(work: JsonObject) -> bool:
    return string_at(find_condition(work, "Applied"), "status") == "False"


def size_of(found: JsonObject) -> JsonValue:
    return object_at(found, "spec").get("size")


def has_size(size: int) -> Callable[[JsonObject], bool]:
    return lambda found: size_of(found) == size


def annotation_of(found: JsonObject, name: str) -> str:
    return string_at(found, "metadata", "annotations", name)


def clusters_of(binding: JsonObject) -> list[str]:
    return [string_at(one, "name") for one in objects_at(binding, "spec", "clusters")]
