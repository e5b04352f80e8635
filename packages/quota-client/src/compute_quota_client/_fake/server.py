"""Answers requests as a Milo API server does."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

import httpx
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from compute_quota_client._fake import refusals
from compute_quota_client._fake.admission import admit_claim
from compute_quota_client._fake.ledger import Ledger, active
from compute_quota_client._fake.objects import (
    NEVER,
    QUOTA_API,
    AnyObject,
    ClaimObject,
    Condition,
    GrantObject,
    NamespaceObject,
    Object,
    RegistrationObject,
    Status,
)
from compute_quota_client._fake.patches import json_patch, merge_patch
from compute_quota_client._fake.store import Store, Where
from compute_quota_client._fake.streams import WatchStream, matches

if TYPE_CHECKING:
    from compute_quota_client._fake.options import Knobs
    from compute_quota_client._fake.routes import Route

KINDS: Final[dict[str, type[Object]]] = {
    "resourceclaims": ClaimObject,
    "resourcegrants": GrantObject,
    "resourceregistrations": RegistrationObject,
    "namespaces": NamespaceObject,
}
REGISTERED: Final = (
    "The registration is active and resource grants and claims can now be created for this"
    " resource type."
)
_AUTO_CREATED: Final = "quota.miloapis.com/auto-created"
_CREATED_BY: Final = "quota.miloapis.com/created-by"
_JSON: Final = TypeAdapter[JsonValue](JsonValue)


class _Preconditions(BaseModel):
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815 - the wire's name


class _DeleteOptions(BaseModel):
    preconditions: _Preconditions = _Preconditions()


class Server:
    """All planes of a fake Milo."""

    def __init__(self, options: Knobs) -> None:
        self._options = options
        self.store = Store(options.read_clock)
        self.ledger = Ledger(self.store, options.read_clock)
        self.streams: set[WatchStream] = set()

    def answer(self, asked: Route, request: httpx.Request) -> httpx.Response:
        """The answer to a request; refusals are raised."""
        user = request.headers.get("Impersonate-User")
        if user is not None:
            raise refusals.forbidden(asked.resource, user, asked.verb, asked.namespace)
        if asked.method == "GET":
            return self._read(asked, request)
        if asked.method == "POST":
            return _respond(201, self.create(asked, request.content))
        if asked.method == "PATCH":
            return _respond(200, self.patch(asked, request))
        return _respond(200, self._delete(asked, request.content))

    def evaluate(self, where: Where) -> None:
        """Evaluates a claim, and does what Milo does next."""
        claim = self.ledger.evaluate(where)
        if claim is None or claim.granted is None:
            return
        if claim.granted.status == "True":
            self._schedule_reaper(where, claim)
        elif _is_auto_created(claim):
            self.store.delete(where)

    def _read(self, asked: Route, request: httpx.Request) -> httpx.Response:
        if asked.resource == "allowancebuckets":
            buckets = self.ledger.bucket_list(asked.plane)
            return _respond(200, self._listing("AllowanceBucket", buckets))
        if asked.resource == "configmaps":
            return _respond(200, self._listing("ConfigMap", [], api_version="v1"))
        if asked.watches:
            return self._watch(asked, request)
        if asked.name is not None:
            return _respond(200, self._find(asked).render())
        return self._list(asked, request)

    def _list(self, asked: Route, request: httpx.Request) -> httpx.Response:
        params = request.url.params
        selector = params.get("labelSelector", "")
        items: list[JsonValue] = [
            one.render()
            for one in self.store.all(asked.plane, KINDS[asked.resource])
            if asked.namespace in {None, one.metadata.namespace} and matches(selector, one)
        ]
        start, version = self._page(params.get("continue"))
        limit = int(params.get("limit") or len(items) or 1)
        kind = str(KINDS[asked.resource].model_fields["kind"].default)
        api_version = str(KINDS[asked.resource].model_fields["api_version"].default)
        listing = self._listing(kind, items[start : start + limit], api_version, version)
        if start + limit < len(items):
            listing["metadata"] = {
                "resourceVersion": version,
                "continue": f"{start + limit}@{version}",
            }
        return _respond(200, listing)

    def _page(self, token: str | None) -> tuple[int, str]:
        """Start and version of a page; 410 where the version is older than the history."""
        if not token:
            return 0, str(self.store.version)
        start, _, version = token.partition("@")
        if int(version) < self.store.oldest:
            raise refusals.expired()
        return int(start), version

    def _listing(
        self,
        kind: str,
        items: list[JsonValue],
        api_version: str = QUOTA_API,
        version: str | None = None,
    ) -> dict[str, JsonValue]:
        metadata: dict[str, JsonValue] = {"resourceVersion": version or str(self.store.version)}
        return {
            "apiVersion": api_version,
            "kind": f"{kind}List",
            "metadata": metadata,
            "items": items,
        }

    def _watch(self, asked: Route, request: httpx.Request) -> httpx.Response:
        version = request.url.params.get("resourceVersion")
        stream = WatchStream(self.store, self._options, asked, request, self.streams.discard)
        if version and int(version) < self.store.oldest:
            if self._options.expired_at_start == "status":
                raise refusals.expired()
            stream.send_expired()
        self.streams.add(stream)
        return httpx.Response(200, headers={"Content-Type": "application/json"}, stream=stream)

    def _find(self, asked: Route) -> Object:
        where = _where(asked)
        stored = self.store.find(where, KINDS[asked.resource])
        if stored is None:
            raise refusals.not_found(asked.resource, where.name)
        return stored

    def create(self, asked: Route, content: bytes) -> dict[str, JsonValue]:
        """Creates an object, if it is admitted and there is none of its name."""
        wanted = _parsed(KINDS[asked.resource], _JSON.validate_json(content))
        where = _where(asked, wanted.metadata.name)
        if asked.namespace is not None:
            namespace = Where(asked.plane, "namespaces", None, asked.namespace)
            if self.store.find(namespace, NamespaceObject) is None:
                raise refusals.not_found("namespaces", asked.namespace)
        self._refuse_if_suspended(asked, wanted.metadata.name)
        self._admit(wanted)
        if self.store.find(where, Object) is not None:
            raise refusals.already_exists(asked.resource, where.name)
        if isinstance(wanted, ClaimObject):
            wanted.status = Status(conditions=[_awaiting()])
        made = self.store.create(where, wanted)
        # Rendered first: controllers act after the answer.
        answer = made.render()
        self._follow_up(where, made)
        return answer

    def _refuse_if_suspended(self, asked: Route, name: str) -> None:
        if asked.resource == "resourceclaims" and asked.plane in self._options.suspended:
            raise refusals.suspended(asked.resource, name, asked.plane)

    def _admit(self, wanted: Object) -> None:
        if isinstance(wanted, ClaimObject):
            admit_claim(wanted, self.ledger.registration)
        if isinstance(wanted, RegistrationObject):
            taken = wanted.spec.resource_type
            if self.ledger.registration(taken) is not None:
                error = (
                    'spec.resourceType: Duplicate value: "resource type'
                    f" '{taken}' is already registered\""
                )
                raise refusals.not_admitted(
                    "resourceregistrations", "ResourceRegistration", wanted.metadata.name, [error]
                )

    def _follow_up(self, where: Where, made: Object) -> None:
        """Does what Milo's controllers do for a new object."""
        if isinstance(made, RegistrationObject):
            made.status = active(REGISTERED, "RegistrationActive", self._options.read_clock())
            self.store.update(where, made)
        elif isinstance(made, GrantObject):
            made.status = active(
                "ResourceGrant is active", "GrantActive", self._options.read_clock()
            )
            self.store.update(where, made)
        elif isinstance(made, ClaimObject) and not self._options.paused:
            delay = self._options.evaluation_delay.total_seconds()
            asyncio.get_running_loop().call_later(delay, self._evaluate_unless_paused, where)

    def _evaluate_unless_paused(self, where: Where) -> None:
        if not self._options.paused:
            self.evaluate(where)

    def _schedule_reaper(self, where: Where, claim: ClaimObject) -> None:
        if self._options.reaper and not claim.metadata.owner_references:
            delay = self._options.reaper_delay.total_seconds()
            asyncio.get_running_loop().call_later(delay, self._reap, where, claim.metadata.uid)

    def _reap(self, where: Where, uid: str) -> None:
        claim = self.store.find(where, ClaimObject)
        if claim is not None and claim.metadata.uid == uid:
            self.store.delete(where)

    def patch(self, asked: Route, request: httpx.Request) -> dict[str, JsonValue]:
        """Changes an object by a JSON patch or a merge patch."""
        stored = self._find(asked)
        before = stored.render()
        if request.headers.get("Content-Type") == "application/json-patch+json":
            patched = json_patch(stored.render(), request.content)
        else:
            patched = merge_patch(stored.render(), _JSON.validate_json(request.content))
        changed = _parsed(KINDS[asked.resource], patched)
        self._refuse_if_suspended(asked, stored.metadata.name)
        if changed.render() == before:
            return before
        if changed.render().get("spec") != before.get("spec"):
            changed.metadata.generation = (stored.metadata.generation or 0) + 1
        return self.store.update(_where(asked), changed).render()

    def _delete(self, asked: Route, content: bytes) -> dict[str, JsonValue]:
        stored, where = self._find(asked), _where(asked)
        wanted = _DeleteOptions.model_validate_json(content or b"{}").preconditions
        for field, want, have, hint in (
            ("UID", wanted.uid, stored.metadata.uid, "deleted and then recreated"),
            (
                "ResourceVersion",
                wanted.resourceVersion,
                stored.metadata.resource_version,
                "modified",
            ),
        ):
            if want is not None and want != have:
                detail = (
                    f"the {field} in the precondition ({want}) does not match the {field} in record"
                    f" ({have}). The object might have been {hint}"
                )
                raise refusals.conflict(stored.kind, where.name, detail)
        self.store.delete(where)
        left = self.store.find(where, Object)
        if left is not None:
            return left.render()
        details: dict[str, JsonValue] = {
            "name": where.name,
            "group": refusals.GROUP,
            "kind": where.resource,
            "uid": stored.metadata.uid,
        }
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }


def _where(asked: Route, name: str | None = None) -> Where:
    return Where(asked.plane, asked.resource, asked.namespace, name or asked.name or "")


def _parsed(kind: type[AnyObject], body: JsonValue) -> AnyObject:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        named = str(kind.model_fields["kind"].default)
        where = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise refusals.invalid(named, "", f"{where}: Invalid value") from error


def _awaiting() -> Condition:
    return Condition(
        type="Granted",
        status="False",
        reason="PendingEvaluation",
        message="Awaiting capacity evaluation",
        last_transition_time=NEVER,
    )


def _is_auto_created(claim: ClaimObject) -> bool:
    labels, annotations = claim.metadata.labels or {}, claim.metadata.annotations or {}
    return labels.get(_AUTO_CREATED) == "true" and _CREATED_BY in annotations


def _respond(code: int, body: JsonValue) -> httpx.Response:
    headers = {"Content-Type": "application/json"}
    return httpx.Response(code, headers=headers, content=json.dumps(body).encode())


def refused(refusal: refusals.Refusal) -> httpx.Response:
    """The HTTP response of a refusal."""
    response = _respond(refusal.code, refusal.body)
    response.headers.update(refusal.headers)
    return response
