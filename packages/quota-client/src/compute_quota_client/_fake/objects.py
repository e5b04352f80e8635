"""Milo's quota objects and namespaces as the fake stores them, with unknown fields."""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

QUOTA_API: Final = "quota.miloapis.com/v1alpha1"
# The time of a claim's default condition.
NEVER: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class Stored(BaseModel):
    """Base of all models: camelCase on the wire, unknown fields are kept."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class Metadata(Stored):
    name: str
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: AwareDatetime | None = None
    deletion_timestamp: AwareDatetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[dict[str, JsonValue]] | None = None


class Ref(Stored):
    api_group: str = ""
    kind: str
    name: str
    namespace: str | None = None


class KindRef(Stored):
    api_group: str = ""
    kind: str


class Request(Stored):
    resource_type: str
    amount: int


class Condition(Stored):
    type: str
    status: str
    reason: str
    message: str
    last_transition_time: AwareDatetime
    observed_generation: int | None = None


class AllocationStatus(Stored):
    resource_type: str
    status: str
    reason: str
    message: str
    last_transition_time: AwareDatetime
    allocated_amount: int | None = None
    allocating_bucket: str | None = None


class Status(Stored):
    conditions: list[Condition] | None = None
    allocations: list[AllocationStatus] | None = None
    observed_generation: int | None = None


class Object(Stored):
    """Anything with metadata; `kind` and `apiVersion` are the subclass's."""

    api_version: str = QUOTA_API
    kind: str
    metadata: Metadata

    def render(self) -> dict[str, JsonValue]:
        """The object as JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class ClaimSpec(Stored):
    consumer_ref: Ref
    resource_ref: Ref
    requests: list[Request] = Field(min_length=1, max_length=20)


class ClaimObject(Object):
    kind: str = "ResourceClaim"
    spec: ClaimSpec
    status: Status | None = None

    @property
    def granted(self) -> Condition | None:
        """The condition `Granted`."""
        conditions = (self.status.conditions if self.status else None) or []
        return next((condition for condition in conditions if condition.type == "Granted"), None)


class Bucket(Stored):
    amount: int


class Allowance(Stored):
    resource_type: str
    buckets: list[Bucket]


class GrantSpec(Stored):
    consumer_ref: Ref
    allowances: list[Allowance] = Field(min_length=1)


class GrantObject(Object):
    kind: str = "ResourceGrant"
    spec: GrantSpec
    status: Status | None = None


class RegistrationSpec(Stored):
    resource_type: str
    consumer_type: KindRef
    claiming_resources: list[KindRef] = Field(min_length=1, max_length=20)


class RegistrationObject(Object):
    kind: str = "ResourceRegistration"
    spec: RegistrationSpec
    status: Status | None = None


class NamespaceObject(Object):
    api_version: str = "v1"
    kind: str = "Namespace"


AnyObject = TypeVar("AnyObject", bound=Object)
