"""`Claim`, the claim a caller wants, and `FoundClaim`, a claim as the server has it.

Values only: nothing here talks to a server. A `Claim` is checked when it is built, so that an error
comes before any request and names the argument; no operation checks it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from compute_quota_client import _names
from compute_quota_client._exceptions import QuotaUsageError
from compute_quota_client._verdicts import ClaimKey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

PROJECT_GROUP: Final = "resourcemanager.miloapis.com"
# Milo deletes claims that carry these, of any author (docs/spec/quota.md A7).
AUTO_CLEANUP_KEYS: Final = ("quota.miloapis.com/auto-created", "quota.miloapis.com/created-by")
# ResourceClaim spec.requests has maxItems 20, and amounts are int64.
MAX_REQUESTS: Final = 20
MAX_AMOUNT: Final = 2**63 - 1

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """A reference to an object by group, kind and name, for consumer and resource of a claim."""

    api_group: str
    kind: str
    name: str
    namespace: str | None = None


def project_ref(name: str) -> ObjectRef:
    """The reference to a Project, for `consumer` and `resource`."""
    return ObjectRef(PROJECT_GROUP, "Project", _names.check_label("name", name))


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """One request of a claim: an amount of a resource type."""

    resource_type: str
    amount: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """The result of one request; `amount` is what is reserved, 0 where nothing is."""

    resource_type: str
    status: str
    amount: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class GrantedCondition:
    """The condition `Granted` of a claim."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class FoundClaim:
    """A ResourceClaim as the server has it.

    `requests` is a sequence, not a mapping: admission refuses a type twice, but does not check a
    later edit, and a mapping would hide one of the two.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    created_at: datetime
    deleting_since: datetime | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    requests: tuple[ResourceRequest, ...]
    consumer: ObjectRef
    resource: ObjectRef
    granted: GrantedCondition | None
    allocations: tuple[Allocation, ...]

    @property
    def key(self) -> ClaimKey:
        """Namespace and name."""
        return ClaimKey(self.namespace, self.name)

    def value_of(self, key: str) -> str | None:
        """What the claim carries under `key`: its label, else its annotation."""
        return self.labels.get(key, self.annotations.get(key))

    def carries(self, values: Mapping[str, str | None]) -> bool:
        """Whether every key has exactly this value; None: whether it is absent."""
        return all(self.value_of(key) == value for key, value in values.items())

    def asks_for(self, requests: Mapping[str, int]) -> bool:
        """Whether it asks for exactly this, order aside."""
        asked = sorted((request.resource_type, request.amount) for request in self.requests)
        return asked == sorted(requests.items())


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim a caller wants to exist.

    `owner` identifies the claiming service and `subject` the object the claim is for. A key of
    theirs that is also in `labels` or `annotations` is one of these; otherwise `owner` is written
    as labels and `subject` as annotations.

    Raises:
        QuotaUsageError: an argument is not valid for a claim.
    """

    namespace: str
    name: str
    requests: Mapping[str, int]
    consumer: ObjectRef
    resource: ObjectRef | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    owner: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    subject: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        _names.check_label("namespace", self.namespace)
        _names.check_subdomain("name", self.name)
        _check_requests(self.requests)
        _check_metadata(self)
        for name in ("requests", "labels", "annotations", "owner", "subject"):
            # Copied and read-only: the caller's dict may change after it was checked.
            sealed: Mapping[str, object] = MappingProxyType(dict(getattr(self, name)))
            object.__setattr__(self, name, sealed)

    @property
    def claiming_resource(self) -> ObjectRef:
        """The resource the claim is for: the consumer, unless another is named."""
        return self.consumer if self.resource is None else self.resource

    def written_labels(self) -> dict[str, str]:
        """The labels of the created claim."""
        added = {key: value for key, value in self.owner.items() if key not in self.annotations}
        return {**self.labels, **added}

    def written_annotations(self) -> dict[str, str]:
        """The annotations of the created claim."""
        added = {
            key: value
            for key, value in self.subject.items()
            if key not in self.labels and key not in self.owner
        }
        return {**self.annotations, **added}


def check_identity(**values: Mapping[str, str]) -> None:
    """Refuses keys that Milo cleans up after, malformed keys, and a key with two values."""
    seen: dict[str, str] = {}
    for argument, mapping in values.items():
        for key, value in mapping.items():
            if key in AUTO_CLEANUP_KEYS:
                raise QuotaUsageError(f"{key!r} makes Milo clean up the claim", argument=argument)
            _names.check_key(argument, key)
            if seen.setdefault(key, value) != value:
                raise QuotaUsageError(f"{key!r} is given two values", argument=argument)


def _check_requests(requests: Mapping[str, int]) -> None:
    if not 1 <= len(requests) <= MAX_REQUESTS:
        raise QuotaUsageError(
            f"{len(requests)} given, 1 to {MAX_REQUESTS} are possible", argument="requests"
        )
    for resource_type, amount in requests.items():
        if not resource_type:
            raise QuotaUsageError("a resource type is empty", argument="requests")
        # bool is an int to Python; True of anything is a mistake.
        if type(amount) is not int or not 1 <= amount <= MAX_AMOUNT:
            raise QuotaUsageError(
                f"{_names.shown(amount)} of {_names.shown(resource_type)} is not an amount"
                f" from 1 to {MAX_AMOUNT}",
                argument="requests",
            )


def _check_metadata(claim: Claim) -> None:
    check_identity(
        labels=claim.labels,
        annotations=claim.annotations,
        owner=claim.owner,
        subject=claim.subject,
    )
    for key, value in claim.written_labels().items():
        _names.check_label_value("owner" if key in claim.owner else "labels", key, value)
