"""An in-memory Milo for tests of services that claim quota, and of this library itself.

    fake = FakeQuota()
    fake.add_project("acme")
    fake.register("storage.example.com/gib")
    fake.grant("acme", {"storage.example.com/gib": 100})
    async with fake.client() as quota:
        verdict = await quota.project("acme").claim(wanted)

It is behind an httpx transport, so everything above the network is the real library. It behaves as
Milo does (docs/spec/quota.md A7): a claim is evaluated shortly after its creation, a denial is
final and keeps the requests that fitted, later changes of a spec are accepted and not evaluated.
The contract tests of this package run on the fake and on a real Milo.

Failures are set, not patched in: `fake.knobs`, `fail_next`, `lose_next_reply`, `drop_watches`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import httpx
from pydantic import JsonValue, TypeAdapter

from compute_quota_client._client import QuotaClient
from compute_quota_client._config import QuotaSettings
from compute_quota_client._dependencies import Surroundings
from compute_quota_client._exceptions import Operation
from compute_quota_client._fake.builders import (
    BUCKET_UID,
    GIB,
    OBJECTS,
    REGION,
    a_claim,
    a_found_claim,
)
from compute_quota_client._fake.ledger import ROOT, active
from compute_quota_client._fake.objects import (
    Allowance,
    Bucket,
    ClaimObject,
    GrantObject,
    GrantSpec,
    KindRef,
    Metadata,
    NamespaceObject,
    Ref,
    RegistrationObject,
    RegistrationSpec,
)
from compute_quota_client._fake.options import Knobs
from compute_quota_client._fake.port import FakePort
from compute_quota_client._fake.refusals import Refusal
from compute_quota_client._fake.routes import Route, route
from compute_quota_client._fake.server import REGISTERED, Server, refused
from compute_quota_client._fake.store import Where
from compute_quota_client._models import FoundClaim, ObjectRef, project_ref
from compute_quota_client._override import override
from compute_quota_client._wire import WireClaim, claim_body

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from compute_quota_client._models import Claim

__all__ = [
    "BUCKET_UID",
    "GIB",
    "OBJECTS",
    "REGION",
    "SERVER",
    "Exchange",
    "Failure",
    "FakePort",
    "FakeQuota",
    "Knobs",
    "a_claim",
    "a_found_claim",
]

SERVER: Final = "https://milo.test"
_JSON: Final = TypeAdapter[JsonValue](JsonValue)
_PROJECT_KIND: Final = ("resourcemanager.miloapis.com", "Project")


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer to give instead of the right one; the request is not carried out."""

    status: int
    reason: str = ""
    message: str = "told to fail"
    retry_after: int | None = None
    body: bytes | None = None

    def response(self) -> httpx.Response:
        """The answer, as a Kubernetes `Status` unless `body` is given."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.body is not None:
            return httpx.Response(self.status, headers=headers, content=self.body)
        return refused(Refusal(self.status, self.reason, self.message, None, headers))


Trouble: TypeAlias = "Failure | type[httpx.TransportError]"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request that the fake received."""

    project: str
    operation: Operation | None
    method: str
    url: httpx.URL
    headers: httpx.Headers
    content: bytes


class FakeQuota:
    """A Milo without projects, registrations and grants; a test adds what it needs."""

    def __init__(self) -> None:
        self.knobs = Knobs()
        self.requests: list[Exchange] = []
        self.transport: httpx.AsyncBaseTransport = _Transport(self)
        self._server = Server(self.knobs)
        self._failing: dict[Operation, deque[Trouble]] = defaultdict(deque[Trouble])
        self._losing: set[Operation] = set()
        self._meanwhile: dict[Operation, Callable[[], None]] = {}

    def client(
        self, settings: QuotaSettings | None = None, surroundings: Surroundings | None = None
    ) -> QuotaClient:
        """A client of this fake."""
        return QuotaClient(
            SERVER,
            transport=self.transport,
            settings=settings or QuotaSettings(),
            surroundings=surroundings or Surroundings(),
        )

    def port(self, tls: ssl.SSLContext) -> FakePort:
        """This fake behind a real port, where TLS and connections matter."""
        return FakePort(self.handle, tls)

    def add_project(self, name: str, *namespaces: str) -> None:
        """Creates a project, with the namespaces of a new one and the given ones."""
        for namespace in ("default", "milo-system", *namespaces):
            where = Where(name, "namespaces", None, namespace)
            wanted = NamespaceObject(metadata=Metadata(name=namespace))
            self._server.store.create(where, wanted)

    def register(
        self,
        resource_type: str,
        *,
        consumer: tuple[str, str] = _PROJECT_KIND,
        claiming: tuple[tuple[str, str], ...] = (_PROJECT_KIND,),
    ) -> None:
        """Registers a resource type; kinds are given as (group, kind)."""
        name = resource_type.replace("/", "-").replace(".", "-")
        spec = RegistrationSpec(
            resource_type=resource_type,
            consumer_type=KindRef(api_group=consumer[0], kind=consumer[1]),
            claiming_resources=[KindRef(api_group=one[0], kind=one[1]) for one in claiming],
        )
        status = active(REGISTERED, "RegistrationActive", self.knobs.read_clock())
        wanted = RegistrationObject(metadata=Metadata(name=name), spec=spec, status=status)
        self._server.store.create(Where(ROOT, "resourceregistrations", None, name), wanted)

    def grant(
        self,
        project: str,
        allowances: Mapping[str, int],
        *,
        consumer: ObjectRef | None = None,
        name: str = "grant",
    ) -> None:
        """Grants `consumer` (the project itself) amounts; a grant of that name is replaced."""
        who = consumer or project_ref(project)
        where = Where(project, "resourcegrants", "milo-system", name)
        wanted = GrantObject(
            metadata=Metadata(name=name),
            spec=GrantSpec(
                consumer_ref=Ref(api_group=who.api_group, kind=who.kind, name=who.name),
                allowances=[
                    Allowance(resource_type=kind, buckets=[Bucket(amount=amount)])
                    for kind, amount in allowances.items()
                ],
            ),
            status=active("ResourceGrant is active", "GrantActive", self.knobs.read_clock()),
        )
        if self._server.store.find(where, GrantObject) is None:
            self._server.store.create(where, wanted)
        else:
            self._server.store.update(where, wanted)

    def evaluate(self) -> None:
        """Evaluates every pending claim now."""
        for where in self._server.store.places("resourceclaims"):
            self._server.evaluate(where)

    def reserved(self, project: str, resource_type: str, consumer: ObjectRef | None = None) -> int:
        """The amount of a resource type that claims of a consumer (the project itself) reserve."""
        who = consumer or project_ref(project)
        ref = Ref(api_group=who.api_group, kind=who.kind, name=who.name)
        return sum(self._server.ledger.reserved(project, resource_type, ref))

    def claims(self, project: str) -> list[FoundClaim]:
        """The claims of a project."""
        claims = self._server.store.all(project, ClaimObject)
        return [WireClaim.model_validate(one.render()).to_found() for one in claims]

    def claim_json(self, project: str, namespace: str, name: str) -> dict[str, JsonValue]:
        """A claim as it is stored, with all fields."""
        for claim in self._server.store.all(project, ClaimObject):
            if (claim.metadata.namespace, claim.metadata.name) == (namespace, name):
                return claim.render()
        raise KeyError(f"{project}/{namespace}/{name}")

    def add_claim(self, project: str, wanted: Claim) -> None:
        """Creates a claim, as another client would."""
        asked = Route(project, "resourceclaims", wanted.namespace, None, "POST", watches=False)
        self._server.create(asked, claim_body(wanted))

    def edit_claim(
        self, project: str, namespace: str, name: str, patch: dict[str, JsonValue]
    ) -> None:
        """Changes a claim by a merge patch, as another client would; its status too."""
        asked = Route(project, "resourceclaims", namespace, name, "PATCH", watches=False)
        body = httpx.Request("PATCH", SERVER, content=_JSON.dump_json(patch))
        self._server.patch(asked, body)

    def delete_claim(self, project: str, namespace: str, name: str) -> None:
        """Deletes a claim, as another client would."""
        self._server.store.delete(Where(project, "resourceclaims", namespace, name))

    def fail_next(self, operation: Operation, *troubles: Trouble) -> None:
        """The next requests of this operation fail, one for each of `troubles`."""
        self._failing[operation].extend(troubles)

    def lose_next_reply(self, operation: Operation) -> None:
        """The next request of this operation is carried out, and its answer is lost."""
        self._losing.add(operation)

    def before_next(self, operation: Operation, action: Callable[[], None]) -> None:
        """Calls `action` immediately before the next request of this operation: a race."""
        self._meanwhile[operation] = action

    def fail_no_more(self) -> None:
        """Clears what is left of `fail_next` and `lose_next_reply`."""
        self._failing.clear()
        self._losing.clear()

    def forget_history(self, *, running_watches: bool = True) -> None:
        """Drops the history; running watches get a 410 now, or when they reconnect."""
        self._server.store.forget_history()
        for stream in self._server.streams if running_watches else ():
            stream.send_expired()

    def drop_watches(self) -> None:
        """Breaks the connections of all running watches."""
        for stream in self._server.streams:
            stream.drop()

    def say_in_watches(self, line: bytes) -> None:
        """Sends a line in all running watches."""
        for stream in self._server.streams:
            stream.send_line(line)

    @property
    def version(self) -> str:
        """The last resourceVersion of any object, in any project."""
        return str(self._server.store.version)

    def states_of_claim(self, project: str, namespace: str, name: str) -> list[JsonValue]:
        """Every stored state of a claim, first to last."""
        where = Where(project, "resourceclaims", namespace, name)
        return [
            change.after.render()
            for change in self._server.store.history
            if change.where == where and change.after is not None
        ]

    @property
    def open_watches(self) -> int:
        """How many watches are open."""
        return len(self._server.streams)

    def sent(self, operation: Operation, project: str | None = None) -> list[Exchange]:
        """The requests of one operation, of one project or of all."""
        return [
            one
            for one in self.requests
            if one.operation is operation and project in {None, one.project}
        ]

    async def handle(self, request: httpx.Request) -> httpx.Response:
        """Answers a request, with the latency and failures that were set."""
        asked = route(request)
        operation = asked.operation if asked else None
        project = asked.plane if asked else ""
        content = await request.aread()
        headers = httpx.Headers(request.headers)
        self.requests.append(
            Exchange(project, operation, request.method, request.url, headers, content)
        )
        if project in self.knobs.away:
            raise httpx.ConnectError("the plane is away", request=request)
        await self._take_time(request)
        if operation is not None:
            self._meanwhile.pop(operation, _nothing)()
            if self._failing[operation]:
                return self._fail(self._failing[operation].popleft(), request)
        return self._answer(asked, operation, request)

    def _answer(
        self, asked: Route | None, operation: Operation | None, request: httpx.Request
    ) -> httpx.Response:
        if asked is None:
            return httpx.Response(404, content=b"404 page not found\n")
        try:
            response = self._server.answer(asked, request)
        except Refusal as refusal:
            return refused(refusal)
        if operation in self._losing:
            self._losing.discard(operation)
            raise httpx.ReadError("the answer was lost", request=request)
        return response

    async def _take_time(self, request: httpx.Request) -> None:
        limits: dict[str, float | None] = request.extensions.get("timeout", {})
        read = limits.get("read")
        takes = self.knobs.latency.total_seconds()
        if read is not None and takes > read:
            await asyncio.sleep(read)
            raise httpx.ReadTimeout("too slow", request=request)
        await asyncio.sleep(takes)

    @staticmethod
    def _fail(trouble: Trouble, request: httpx.Request) -> httpx.Response:
        if isinstance(trouble, Failure):
            return trouble.response()
        raise trouble("told to fail", request=request)


class _Transport(httpx.AsyncBaseTransport):
    def __init__(self, fake: FakeQuota) -> None:
        self._fake = fake

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._fake.handle(request)


def _nothing() -> None:
    """The action before a request where none was set."""
