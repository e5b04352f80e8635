"""Milo's objects on the wire: models of the fields that are read, and the bodies that are written.

JSON is parsed here into values of `_models`; no other module handles a dict from the wire. Unknown
fields are ignored, since a newer Milo adds some; an object that does not fit is a `ValueError`,
which callers translate to `QuotaProtocolError` with the operation.
"""

from __future__ import annotations

import json
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from compute_quota_client._models import (
    Allocation,
    Claim,
    FoundClaim,
    GrantedCondition,
    ObjectRef,
    ResourceRequest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

API_VERSION: Final = "quota.miloapis.com/v1alpha1"
KIND: Final = "ResourceClaim"


class Wire(BaseModel):
    """Base of all models: camelCase on the wire, unknown fields ignored, frozen."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )


class WireRef(Wire):
    api_group: str = ""
    kind: str
    name: str
    namespace: str | None = None

    def to_ref(self) -> ObjectRef:
        return _ref(self.api_group, self.kind, self.name, self.namespace or None)


class WireRequest(Wire):
    resource_type: str
    amount: int


class WireSpec(Wire):
    consumer_ref: WireRef
    resource_ref: WireRef
    requests: tuple[WireRequest, ...]


class WireAllocation(Wire):
    resource_type: str
    status: str
    allocated_amount: int = 0
    reason: str = ""
    message: str = ""


class WireCondition(Wire):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class WireStatus(Wire):
    allocations: tuple[WireAllocation, ...] = ()
    conditions: tuple[WireCondition, ...] = ()


class WireMetadata(Wire):
    name: str
    namespace: str = ""
    uid: str
    resource_version: str
    creation_timestamp: AwareDatetime
    deletion_timestamp: AwareDatetime | None = None
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    annotations: dict[str, str] = Field(default_factory=dict[str, str])


class WireClaim(Wire):
    """A ResourceClaim; lists leave out its kind, so `kind` is checked outside of lists only."""

    kind: str | None = None
    metadata: WireMetadata
    spec: WireSpec
    status: WireStatus = WireStatus()

    def to_found(self) -> FoundClaim:
        if self.kind not in {None, KIND}:
            raise ValueError(f"{self.kind!r} is not a {KIND}")
        meta = self.metadata
        return FoundClaim(
            namespace=intern(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
            created_at=meta.creation_timestamp,
            deleting_since=meta.deletion_timestamp,
            # Interned: many claims share their labels. Annotations differ from claim to claim.
            labels=MappingProxyType({intern(k): intern(v) for k, v in meta.labels.items()}),
            annotations=MappingProxyType({intern(k): v for k, v in meta.annotations.items()}),
            requests=tuple(_request(r.resource_type, r.amount) for r in self.spec.requests),
            consumer=self.spec.consumer_ref.to_ref(),
            resource=self.spec.resource_ref.to_ref(),
            granted=self._granted(),
            allocations=tuple(_to_allocation(a) for a in self.status.allocations),
        )

    def _granted(self) -> GrantedCondition | None:
        for condition in self.status.conditions:
            if condition.type == "Granted":
                return _granted(condition.status, condition.reason, condition.message)
        return None


class WireListMetadata(Wire):
    resource_version: str
    # `continue` is a Python keyword, so the alias is given.
    next_page: str = Field(default="", alias="continue")


class WireClaimList(Wire):
    metadata: WireListMetadata
    items: tuple[WireClaim, ...]


class WireNamespaceMetadata(Wire):
    uid: str


class WireNamespace(Wire):
    kind: str
    metadata: WireNamespaceMetadata


class WireCause(Wire):
    reason: str = ""
    field: str = ""
    message: str = ""


class WireDetails(Wire):
    kind: str = ""
    causes: tuple[WireCause, ...] = ()
    retry_after_seconds: int | None = None


class WireFailure(Wire):
    """A Kubernetes `Status` of a failure."""

    kind: str
    message: str = ""
    reason: str = ""
    details: WireDetails | None = None
    code: int | None = None


# A service keeps thousands of claims with the same few resources: equal values are shared, among
# the last thousand of each kind.
_ref = lru_cache(maxsize=1024)(ObjectRef)
_request = lru_cache(maxsize=1024)(ResourceRequest)
_allocation = lru_cache(maxsize=1024)(Allocation)
_granted = lru_cache(maxsize=1024)(GrantedCondition)


def _to_allocation(wire: WireAllocation) -> Allocation:
    return _allocation(
        wire.resource_type, wire.status, wire.allocated_amount, wire.reason, wire.message
    )


def _ref_body(ref: ObjectRef) -> dict[str, str]:
    body = {"apiGroup": ref.api_group, "kind": ref.kind, "name": ref.name}
    return body if ref.namespace is None else {**body, "namespace": ref.namespace}


def claim_body(wanted: Claim) -> bytes:
    """The object that creates `wanted`."""
    metadata: dict[str, str | dict[str, str]] = {
        "name": wanted.name,
        "namespace": wanted.namespace,
    }
    if labels := wanted.written_labels():
        metadata["labels"] = labels
    if annotations := wanted.written_annotations():
        metadata["annotations"] = annotations
    requests = [{"resourceType": name, "amount": n} for name, n in wanted.requests.items()]
    spec = {
        "consumerRef": _ref_body(wanted.consumer),
        "resourceRef": _ref_body(wanted.claiming_resource),
        "requests": requests,
    }
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec})


def delete_body(claim: FoundClaim) -> bytes:
    """Deletes the claim in this state only: an adoption keeps the UID, so it is not enough."""
    preconditions = {"uid": claim.uid, "resourceVersion": claim.resource_version}
    return _encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions})


def adopt_body(
    claim: FoundClaim, old_subject: Mapping[str, str | None], new_subject: Mapping[str, str]
) -> bytes:
    """One JSON patch: hands the claim on if UID and old subject are still those that were read.

    JSON patch has no test for absence, so an absent key is guarded by the resourceVersion of the
    whole claim.
    """
    patch = [_step("test", "/metadata/uid", claim.uid)]
    if None in old_subject.values():
        patch.append(_step("test", "/metadata/resourceVersion", claim.resource_version))
        if not claim.annotations:
            patch.append(_step("add", "/metadata/annotations", {}))
    for key, value in sorted(old_subject.items()):
        if value is not None:
            patch.append(_step("test", _pointer(claim, key), value))
    for key, value in sorted(new_subject.items()):
        verb = "replace" if old_subject[key] is not None else "add"
        patch.append(_step(verb, _pointer(claim, key), value))
    return _encode(patch)


def _step(op: str, path: str, value: str | dict[str, str]) -> dict[str, str | dict[str, str]]:
    return {"op": op, "path": path, "value": value}


def _pointer(claim: FoundClaim, key: str) -> str:
    where = "labels" if key in claim.labels else "annotations"
    # RFC 6901: `~` first, or the one made for `/` would be escaped again.
    return f"/metadata/{where}/{key.replace('~', '~0').replace('/', '~1')}"


def _encode(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
