"""Kind, metadata, owners and times, as every Kubernetes object has them.

Only the fields we read or write are modelled; the rest of an object's metadata stays in the raw
document, so that a copy does not lose it. The clock is an argument wherever a time is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import Field

from compute_api_types.errors import ApiTypesError
from compute_api_types.model import Model
from compute_api_types.scalars import Int64, PlainList, ReadOnlyMap, Timestamp

GROUP: Final = "compute.datumapis.com"
VERSION: Final = "v1alpha"
API_VERSION: Final = "compute.datumapis.com/v1alpha"

EPOCH: Final = "1970-01-01T00:00:00Z"
"""The time of a schema default, before the first write of a controller (api.md 7)."""

# A DNS subdomain, as Kubernetes demands of the names of all kinds here.
_NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

ObjectName: TypeAlias = Annotated[str, Field(min_length=1, max_length=253, pattern=_NAME_PATTERN)]


@dataclass(frozen=True, slots=True)
class Resource:
    """How a kind is addressed on an API server."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        """The kind in lower case, as Kubernetes derives it."""
        return self.kind.lower()


class OwnerReference(Model):
    """An owner; the garbage collector deletes the object after it."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    """The metadata we use, of any object."""

    name: ObjectName
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int64 | None = None
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: ReadOnlyMap[str] | None = None
    annotations: ReadOnlyMap[str] | None = None
    finalizers: PlainList[str] | None = None
    owner_references: PlainList[OwnerReference] | None = None

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion was requested; it exists until its finalizers are removed."""
        return self.deletion_timestamp is not None

    def label(self, key: str) -> str | None:
        """One label's value, or None."""
        return self.labels.get(key) if self.labels else None

    def annotation(self, key: str) -> str | None:
        """One annotation's value, or None."""
        return self.annotations.get(key) if self.annotations else None

    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, of which there is at most one."""
        owners = self.owner_references or ()
        return next((owner for owner in owners if owner.controller), None)


class TemplateMeta(Model):
    """Metadata inside a template. It is no ObjectMeta: only these five fields survive."""

    name: str | None = Field(default=None, description="Not used.")
    namespace: str | None = Field(default=None, description="Not used.")
    labels: ReadOnlyMap[str] | None = Field(
        default=None, description="Labels of what is made of the template."
    )
    annotations: ReadOnlyMap[str] | None = Field(
        default=None, description="Annotations of what is made of the template."
    )
    finalizers: PlainList[str] | None = Field(default=None, description="Not used.")


class PartialObject(Model):
    """Any object by its metadata alone: a Namespace, a ResourceBinding."""

    api_version: str | None = None
    kind: str | None = None
    metadata: ObjectMeta

    NAMESPACE: ClassVar = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


class TimestampError(ApiTypesError):
    """The text is no RFC 3339 time."""

    def __init__(self, text: str) -> None:
        super().__init__(f"parsing time {text[:64]!r}: must be RFC 3339, as in {EPOCH}")


def parse_timestamp(text: str) -> datetime:
    """The moment a wire time names, in UTC.

    Raises:
        TimestampError: when it names none.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TimestampError(text) from None
    # Python also takes a bare date or a time without zone, which name no moment.
    if moment.tzinfo is None:
        raise TimestampError(text)
    return moment.astimezone(UTC)


@lru_cache(maxsize=16)  # one status may hold the same moment ten thousand times
def format_timestamp(moment: datetime) -> str:
    """A moment as Kubernetes writes it: UTC, whole seconds, `Z` (api.md 14, trap 12)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
