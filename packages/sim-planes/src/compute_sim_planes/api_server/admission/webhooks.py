"""Validating webhooks, called as kube-apiserver calls them.

Configurations are read from the plane's storage, so each takes effect with its commit. A refusal
carries the webhook's message; a webhook that does not answer fails the request unless its
`failurePolicy` is `Ignore`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.admission.chain import AdmissionRequest
from compute_sim_planes.api_server.admission.match_rules import (
    NAMESPACES,
    MatchResources,
    parse_match,
)
from compute_sim_planes.api_server.admission.webhook_clients import (
    ServiceReference,
    WebhookCaller,
    WebhookCallError,
    WebhookTarget,
)
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.storage.records import Change
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    objects_at,
    string_at,
    strings_at,
)
from compute_sim_planes.time.sources import Identities

CONFIGURATIONS: Final = GroupResource(
    "admissionregistration.k8s.io", "validatingwebhookconfigurations"
)
_REVIEW: Final = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
_SAFE_IN_DRY_RUN: Final = frozenset({"None", "NoneOnDryRun"})


@dataclass(frozen=True, slots=True)
class ValidatingWebhook:
    """One webhook of a configuration."""

    name: str
    target: WebhookTarget
    match: MatchResources
    fails_closed: bool
    timeout: timedelta
    side_effects: str


class ValidatingAdmissionWebhook:
    """The admission plugin that calls every matching webhook, in the order of their names."""

    def __init__(self, store: Store, caller: WebhookCaller, identities: Identities) -> None:
        self._store = store
        self._caller = caller
        self._identities = identities
        self._webhooks: tuple[ValidatingWebhook, ...] = ()
        store.listen(self._on_change)

    def handles(self, request: AdmissionRequest) -> bool:
        return any(webhook.match.covers(request, self._labels_of) for webhook in self._webhooks)

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        warnings: list[str] = []
        for webhook in self._webhooks:
            if webhook.match.covers(request, self._labels_of):
                warnings += await self._call(webhook, request)
        return warnings

    async def _call(self, webhook: ValidatingWebhook, request: AdmissionRequest) -> list[str]:
        if request.dry_run and webhook.side_effects not in _SAFE_IN_DRY_RUN:
            raise api_errors.bad_request(
                f'admission webhook "{webhook.name}" does not support dry run'
            )
        uid = self._identities.uid()
        review: JsonObject = {**_REVIEW, "request": render_request(request, uid)}
        try:
            answered = await self._caller.call(webhook.target, review, webhook.timeout)
            response = parse_response(answered, uid)
        except WebhookCallError as error:
            if not webhook.fails_closed:
                return []
            why = f'failed calling webhook "{webhook.name}": failed to call webhook: {error}'
            raise api_errors.internal(why) from error
        if response.get("allowed") is not True:
            raise refusal(webhook.name, object_at(response, "status"))
        return strings_at(response, "warnings")

    def _labels_of(self, namespace: str) -> dict[str, str] | None:
        existing = self._store.get(NAMESPACES, "", namespace)
        return None if existing is None else existing.labels

    def _on_change(self, change: Change) -> None:
        if change.resource == CONFIGURATIONS:
            listed = self._store.bucket(CONFIGURATIONS).listed()
            self._webhooks = tuple(
                webhook for stored in listed for webhook in parse_configuration(stored.decode())
            )


def parse_configuration(document: JsonObject) -> list[ValidatingWebhook]:
    return [
        ValidatingWebhook(
            name=string_at(webhook, "name"),
            target=_parse_target(object_at(webhook, "clientConfig")),
            match=parse_match(webhook, "rules"),
            fails_closed=string_at(webhook, "failurePolicy") != "Ignore",
            timeout=timedelta(seconds=integer_at(webhook, "timeoutSeconds") or 10),
            side_effects=string_at(webhook, "sideEffects"),
        )
        for webhook in objects_at(document, "webhooks")
    ]


def _parse_target(client: JsonObject) -> WebhookTarget:
    service = object_at(client, "service")
    reference = None
    if service:
        port = integer_at(service, "port") or 443
        reference = ServiceReference(
            string_at(service, "namespace"), string_at(service, "name"), port
        )
    try:
        authority = base64.b64decode(string_at(client, "caBundle"))
    except binascii.Error:
        authority = b""
    return WebhookTarget(string_at(client, "url"), reference, string_at(service, "path"), authority)


def render_request(request: AdmissionRequest, uid: str) -> JsonObject:
    """The `request` of an AdmissionReview."""
    return {
        **render_attributes(request, uid),
        "object": request.desired,
        "oldObject": request.existing,
    }


def render_attributes(request: AdmissionRequest, uid: str) -> JsonObject:
    """A request without its objects, as the expressions of a policy read it."""
    kind = request.kind
    gvk: JsonObject = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    gvr: JsonObject = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    rendered: JsonObject = {
        "uid": uid,
        "kind": gvk,
        "resource": gvr,
        "requestKind": gvk,
        "requestResource": gvr,
        "name": request.name,
        "operation": request.operation,
        "userInfo": request.user.as_json(),
        "dryRun": request.dry_run,
        "options": request.options,
    }
    if request.subresource:
        rendered |= {"subResource": request.subresource, "requestSubResource": request.subresource}
    # For reviews a Namespace object is in the namespace of its own name.
    namespace = request.name if kind.group_resource == NAMESPACES else request.namespace
    if namespace:
        rendered["namespace"] = namespace
    return rendered


def parse_response(answered: JsonValue, uid: str) -> JsonObject:
    """The `response` of a reply, after checking that it is an AdmissionReview for this request."""
    response = object_at(answered, "response")
    if not isinstance(answered, dict) or answered.get("kind") != "AdmissionReview":
        raise WebhookCallError(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview"
        )
    if string_at(answered, "apiVersion") != _REVIEW["apiVersion"]:
        got = f"{string_at(answered, 'apiVersion')}, Kind=AdmissionReview"
        raise WebhookCallError(
            f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {got}"
        )
    if not response:
        raise WebhookCallError("webhook response was absent")
    if string_at(response, "uid") != uid:
        raise WebhookCallError(f'expected response.uid="{uid}", got "{string_at(response, "uid")}"')
    return response


def refusal(webhook: str, status: JsonObject) -> api_errors.StatusError:
    """The webhook's own status as an error, its message prefixed with the webhook's name."""
    denied = f'admission webhook "{webhook}" denied the request'
    message, reason = string_at(status, "message"), string_at(status, "reason")
    explanation = message or reason
    code = integer_at(status, "code") or 0
    details = status.get("details")
    return api_errors.StatusError(
        max(code, 400),
        reason,
        f"{denied}: {explanation}" if explanation else f"{denied} without explanation",
        details=details if isinstance(details, dict) else None,
    )
