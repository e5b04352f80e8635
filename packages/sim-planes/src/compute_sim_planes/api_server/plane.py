"""One simulated plane: an API server with storage and the controllers that every plane has.

`request` authenticates by token; `connect` returns a transport with a fixed user. A plane needs
only a running event loop for its timers; `close` ends its watches and timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from compute_sim_planes.api_server.admission.chain import AdmissionChain
from compute_sim_planes.api_server.admission.policies import AdmissionPolicies
from compute_sim_planes.api_server.admission.webhook_clients import (
    RegisteredWebhooks,
    WebhookCaller,
)
from compute_sim_planes.api_server.admission.webhooks import ValidatingAdmissionWebhook
from compute_sim_planes.api_server.authz.authorizer import Authorizer
from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens, User
from compute_sim_planes.api_server.authz.rbac import RoleAuthorizer, bootstrap_objects
from compute_sim_planes.api_server.authz.role_objects import StoredRoles
from compute_sim_planes.api_server.controllers.definitions import DefinitionController
from compute_sim_planes.api_server.controllers.garbage_collector import (
    GarbageCollector,
    collect_everything,
)
from compute_sim_planes.api_server.controllers.namespaces import NamespaceController
from compute_sim_planes.api_server.dispatch import dispatch
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.kinds.builtin import BUILTIN_KINDS
from compute_sim_planes.api_server.kinds.catalog import Catalog
from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind
from compute_sim_planes.api_server.state import Amendment, Limits, PlaneState
from compute_sim_planes.api_server.storage.kind_rules import rules_of
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.api_server.storage.system_fields import fill_new
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.time.sources import (
    Clock,
    Identities,
    SeededIdentities,
    SystemClock,
)

SERVER: Final = "system:apiserver"
DEFAULT_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(slots=True)
class PlaneParts:
    """The dependencies of a plane; every default suits a test."""

    clock: Clock = field(default_factory=SystemClock)
    identities: Identities = field(default_factory=lambda: SeededIdentities(0))
    tokens: Tokens = field(default_factory=Tokens)
    # None: RBAC by the plane's own objects.
    authorizer: Authorizer | None = None
    # Whether the default roles are created; a plane authorized by another one's roles needs none.
    bootstraps_roles: bool = True
    # The client for validating webhooks.
    webhooks: WebhookCaller = field(default_factory=RegisteredWebhooks)
    # None: by the plane's own configurations; otherwise the chain of another plane.
    admission: AdmissionChain | None = None
    # Mutations of objects by external systems before validation.
    amendments: Mapping[GroupResource, Amendment] = field(
        default_factory=dict[GroupResource, Amendment]
    )
    limits: Limits = field(default_factory=Limits)
    kinds: Iterable[Kind] = BUILTIN_KINDS
    namespaces: tuple[str, ...] = DEFAULT_NAMESPACES
    # Shared by planes of one server (Milo's projects): the version counter and the served kinds.
    revisions: Revisions | None = None
    definitions: DefinitionController | None = None
    # The kinds that are garbage collected: a real collector may not know the newest.
    collects: Callable[[GroupResource], bool] = collect_everything
    version: str = "v1.35.4"


class Plane:
    """A control plane in this process."""

    def __init__(self, name: str, parts: PlaneParts | None = None) -> None:
        parts = parts or PlaneParts()
        self.name = name
        self._webhooks = parts.webhooks
        store = Store(parts.clock, parts.revisions)
        shared = parts.definitions
        catalog = shared.catalog if shared is not None else Catalog(parts.kinds)
        self.state = PlaneState(
            name=name,
            clock=parts.clock,
            identities=parts.identities,
            store=store,
            catalog=catalog,
            tokens=parts.tokens,
            admission=parts.admission or _make_admission(store, parts),
            limits=parts.limits,
            version=parts.version,
            authorizer=parts.authorizer or RoleAuthorizer(StoredRoles(store)),
            amendments=parts.amendments,
        )
        delay = parts.limits.controller_delay
        self.collector = GarbageCollector(
            store, catalog, parts.clock, delay, collects=parts.collects
        )
        self._namespaces = NamespaceController(store, catalog, parts.clock, delay)
        self.definitions = shared or DefinitionController(store, catalog, parts.clock, delay)
        if shared is not None:
            shared.stores.append(store)
        catalog.listen(self._end_stale_streams)
        self._fill(parts.namespaces, roles=parts.bootstraps_roles)

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """The response to a request that authenticates by token."""
        return await dispatch(self.state, None, method, target, headers, body)

    def connect(self, user: User = ADMIN) -> UserTransport:
        """A transport with `user` as the user of every request."""
        return UserTransport(self.state, user)

    def watched_kinds(self) -> tuple[Kind, ...]:
        """The kind of every open watch, in the order in which they were opened."""
        return tuple(stream.kind for stream in self.state.streams)

    async def close(self) -> None:
        """End every watch and cancel every timer. Stored objects stay readable."""
        for stream in tuple(self.state.streams):
            stream.end()
        await self._webhooks.close()
        self.collector.close()
        self._namespaces.close()
        self.definitions.close()

    def _end_stale_streams(self) -> None:
        """End watches of kinds that were replaced or removed, as a real server does."""
        served = set(self.state.catalog)
        for stream in tuple(self.state.streams):
            if stream.kind not in served:
                stream.end()

    def _fill(self, namespaces: tuple[str, ...], *, roles: bool) -> None:
        """Create the objects of a new plane."""
        for name in namespaces:
            self._add(_namespace(name))
        for desired in bootstrap_objects() if roles else ():
            self._add(desired)

    def _add(self, desired: JsonObject) -> None:
        kind = self.state.catalog.find_kind(
            string_at(desired, "apiVersion"), string_at(desired, "kind")
        )
        if kind is None:
            return
        now = self.state.clock.now()
        fill_new(kind, desired, now, self.state.identities)
        rules_of(kind).fill(desired)
        rules_of(kind).prepare_new(desired)
        self.state.store.add(kind, desired, SERVER)


def _make_admission(store: Store, parts: PlaneParts) -> AdmissionChain:
    """Policies before webhooks, in the order of a real server."""
    return AdmissionChain(
        (
            AdmissionPolicies(store),
            ValidatingAdmissionWebhook(store, parts.webhooks, parts.identities),
        )
    )


def _namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


class UserTransport:
    """A transport to a plane with a fixed user."""

    def __init__(self, state: PlaneState, user: User) -> None:
        self._state = state
        self.user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        return await dispatch(self._state, self.user, method, target, headers, body)
