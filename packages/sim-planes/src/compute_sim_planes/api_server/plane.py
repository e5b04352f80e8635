"""One simulated plane: an API server with its storage and the controllers that belong to every
plane.

In-process it is asked through `request` (the caller proves who he is by a token) or through
`connect` (the connection carries the identity). It needs a running event loop for its timers and
nothing else; `close` ends its watches and timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from compute_sim_planes.api_server.admission import Admission
from compute_sim_planes.api_server.authorization import Authorizer
from compute_sim_planes.api_server.builtin_kinds import BUILTIN_KINDS
from compute_sim_planes.api_server.catalog import Catalog
from compute_sim_planes.api_server.controllers.definitions import DefinitionController
from compute_sim_planes.api_server.controllers.garbage_collector import (
    GarbageCollector,
    collect_everything,
)
from compute_sim_planes.api_server.controllers.namespaces import NamespaceController
from compute_sim_planes.api_server.dispatch import dispatch
from compute_sim_planes.api_server.identity import ADMIN, Tokens, User
from compute_sim_planes.api_server.kind_rules import rules_of
from compute_sim_planes.api_server.kinds import GroupResource, Kind
from compute_sim_planes.api_server.policies import AdmissionPolicies, PolicyForm
from compute_sim_planes.api_server.rbac import RoleAuthorizer, bootstrap_objects
from compute_sim_planes.api_server.role_objects import StoredRoles
from compute_sim_planes.api_server.sources import (
    Clock,
    Identities,
    SeededIdentities,
    SystemClock,
)
from compute_sim_planes.api_server.state import Amendment, Limits, PlaneState
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.api_server.system_fields import fill_new
from compute_sim_planes.api_server.transport import Answer
from compute_sim_planes.api_server.webhook_callers import RegisteredWebhooks, WebhookCaller
from compute_sim_planes.api_server.webhooks import ValidatingWebhooks
from compute_sim_planes.json_types import JsonObject, string_at

SERVER: Final = "system:apiserver"
DEFAULT_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(slots=True)
class PlaneParts:
    """What a plane is given; every part has a default that suits a test."""

    clock: Clock = field(default_factory=SystemClock)
    identities: Identities = field(default_factory=lambda: SeededIdentities(0))
    tokens: Tokens = field(default_factory=Tokens)
    # None: from the plane's own roles.
    authorizer: Authorizer | None = None
    # Whether it begins with the roles every server makes; rights from another plane need none here.
    bootstraps_roles: bool = True
    # How validating webhooks are reached, and what stands in for the CEL of admission policies.
    webhooks: WebhookCaller = field(default_factory=RegisteredWebhooks)
    policies: dict[str, PolicyForm] = field(default_factory=dict)
    # None: from the plane's own configurations; another plane's where that one guards this one too.
    admission: Admission | None = None
    # What neighbours do to objects of their kinds on the way in.
    amendments: Mapping[GroupResource, Amendment] = field(
        default_factory=dict[GroupResource, Amendment]
    )
    limits: Limits = field(default_factory=Limits)
    kinds: Iterable[Kind] = BUILTIN_KINDS
    namespaces: tuple[str, ...] = DEFAULT_NAMESPACES
    # Shared by planes of one server (Milo's projects): the order of versions, and what is served.
    revisions: Revisions | None = None
    definitions: DefinitionController | None = None
    # Dependents of which kinds follow their owners: a collector may not know the newest.
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
    ) -> Answer:
        """The answer to a request that proves its user by a token."""
        return await dispatch(self.state, None, method, target, headers, body)

    def connect(self, user: User = ADMIN) -> Connection:
        """A transport whose requests are all made by `user`."""
        return Connection(self.state, user)

    async def close(self) -> None:
        """End every watch and forget every timer. What is stored stays readable."""
        for stream in tuple(self.state.streams):
            stream.end()
        await self._webhooks.close()
        self.collector.close()
        self._namespaces.close()
        self.definitions.close()

    def _end_stale_streams(self) -> None:
        """A watch ends with the form of its kind that it was opened on, as on a real server."""
        served = set(self.state.catalog)
        for stream in tuple(self.state.streams):
            if stream.kind not in served:
                stream.end()

    def _fill(self, namespaces: tuple[str, ...], *, roles: bool) -> None:
        """What a fresh plane holds before anybody comes."""
        for name in namespaces:
            self._add(_namespace(name))
        for wanted in bootstrap_objects() if roles else ():
            self._add(wanted)

    def _add(self, wanted: JsonObject) -> None:
        kind = self.state.catalog.find_kind(
            string_at(wanted, "apiVersion"), string_at(wanted, "kind")
        )
        if kind is None:
            return
        now = self.state.clock.now()
        fill_new(kind, wanted, now, self.state.identities)
        rules_of(kind).fill(wanted)
        rules_of(kind).prepare_new(wanted)
        self.state.store.add(kind, wanted, SERVER)


def _make_admission(store: Store, parts: PlaneParts) -> Admission:
    """Policies before webhooks, as a real server asks them."""
    return Admission(
        (
            AdmissionPolicies(store, parts.policies),
            ValidatingWebhooks(store, parts.webhooks, parts.identities),
        )
    )


def _namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


class Connection:
    """A plane as one user sees it."""

    def __init__(self, state: PlaneState, user: User) -> None:
        self._state = state
        self.user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        return await dispatch(self._state, self.user, method, target, headers, body)
