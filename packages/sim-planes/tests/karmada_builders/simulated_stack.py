"""The simulated stack: three planes behind their own ports, and Karmada."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from compute_sim_planes.api_server.authz.identity import MASTERS, Tokens, authenticated
from compute_sim_planes.api_server.http.server import HttpServer, route_all
from compute_sim_planes.api_server.http.transport import Transport
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.testing import ServerAddress
from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.crds import load_crds
from compute_sim_planes.karmada.interpreter.admission import CustomizationReviewer
from compute_sim_planes.karmada.options import real_plane_options
from compute_sim_planes.karmada.policies.admission import karmada_amendments
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from compute_sim_planes.time.sources import SeededIdentities, SystemClock
from karmada_builders.documents import GADGETS, a_free_definition
from karmada_builders.stack import MEMBERS

ADMIN = authenticated("contract-admin", MASTERS)


class SimulatedStack:
    """A running stack, from `open_stack`."""

    def __init__(self, addresses: dict[str, ServerAddress], tokens: dict[str, Tokens]) -> None:
        self._addresses = addresses
        self._tokens = tokens
        self._transports: dict[tuple[str, str], HttpTransport] = {}
        options = real_plane_options()
        # Clients cannot observe this interval, and the tests need not wait for it.
        options.cleanup_interval = timedelta(milliseconds=200)
        identities = SeededIdentities(secrets.randbits(64))
        parts = KarmadaParts(SystemClock(), identities, options, self.reach)
        self.karmada = Karmada(self.reach(self.hub.url, self.hub.token), parts)

    @property
    def hub(self) -> ServerAddress:
        return self._addresses["hub"]

    def member(self, name: str) -> ServerAddress:
        return self._addresses[name]

    async def issue_token(self, member: str) -> str:
        token = secrets.token_urlsafe(16)
        self._tokens[member].users[token] = ADMIN
        return token

    async def revoke_token(self, member: str, token: str) -> None:
        del self._tokens[member].users[token]
        # A server that revokes a token closes the connections opened with it.
        await self._transports.pop((self.member(member).url, token)).close()

    async def restart_karmada(self) -> None:
        await self.karmada.stop()
        self.karmada.start()

    def reach(self, endpoint: str, token: str) -> Transport:
        key = (endpoint, token)
        if key not in self._transports:
            self._transports[key] = HttpTransport(endpoint, token=token)
        return self._transports[key]

    async def close(self) -> None:
        await self.karmada.stop()
        for transport in self._transports.values():
            await transport.close()


@asynccontextmanager
async def open_stack() -> AsyncGenerator[SimulatedStack]:
    """A stack that runs for the duration of the block, in its event loop."""
    async with AsyncExitStack() as cleanup:
        addresses: dict[str, ServerAddress] = {}
        tokens: dict[str, Tokens] = {}
        for name in ("hub", *MEMBERS):
            plane, tokens[name], address = await _serve(name, cleanup)
            addresses[name] = address
            kinds = load_crds("karmada") if name == "hub" else []
            await apply_manifests(plane.connect(), [*kinds, a_free_definition(GADGETS)])
        stack = SimulatedStack(addresses, tokens)
        cleanup.push_async_callback(stack.close)
        stack.karmada.start()
        yield stack


async def _serve(name: str, cleanup: AsyncExitStack) -> tuple[Plane, Tokens, ServerAddress]:
    token = secrets.token_urlsafe(16)
    tokens = Tokens({token: ADMIN})
    identities = SeededIdentities(secrets.randbits(64))
    parts = PlaneParts(tokens=tokens, identities=identities)
    if name == "hub":
        parts.amendments = karmada_amendments(identities)
    plane = Plane(name, parts)
    if name == "hub":
        plane.state.admission.reviewers.append(CustomizationReviewer(plane.state.store))
    server = HttpServer(route_all(plane))
    await server.start()
    cleanup.push_async_callback(server.close)
    cleanup.push_async_callback(plane.close)
    return plane, tokens, ServerAddress(server.url, token)
