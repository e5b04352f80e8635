"""The simulated form of a stack: three planes behind ports of their own, and Karmada beside."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from compute_sim_planes.api_server.http_server import HttpServer, route_all
from compute_sim_planes.api_server.identity import MASTERS, Tokens, authenticated
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.api_server.sources import SeededIdentities, SystemClock
from compute_sim_planes.api_server.testing import ServerAddress
from compute_sim_planes.api_server.transport import Transport
from compute_sim_planes.client_http import HttpTransport
from compute_sim_planes.crds import load_crds
from compute_sim_planes.karmada.admission import karmada_amendments
from compute_sim_planes.karmada.customization_review import CustomizationReviewer
from compute_sim_planes.karmada.knobs import knobs_of_real_planes
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from karmada_builders.documents import GADGETS, a_free_definition
from karmada_builders.stack import MEMBERS

ADMIN = authenticated("contract-admin", MASTERS)


class SimulatedStack:
    """See `open_stack`."""

    def __init__(self, addresses: dict[str, ServerAddress], tokens: dict[str, Tokens]) -> None:
        self._addresses = addresses
        self._tokens = tokens
        self._transports: dict[tuple[str, str], HttpTransport] = {}
        knobs = knobs_of_real_planes()
        # No client can tell how often an un-join looks; the tests need not wait for it.
        knobs.cleanup_interval = timedelta(milliseconds=200)
        identities = SeededIdentities(secrets.randbits(64))
        parts = KarmadaParts(SystemClock(), identities, knobs, self.reach)
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
        # A server that no longer takes a token ends what it opened.
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
    """Up for as long as the block runs, in its event loop."""
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
