"""Keys: a kind, and one object of a kind on one plane.

The plane is part of every key: without it, a write could go to the object of the same name on
another plane. An empty plane name raises; there is no default plane. Keys are built, hashed and
compared a hundred times per change, and a `msgspec.Struct` does that in C. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NewType

import msgspec
from typing_extensions import override

from compute_operator_kit.core.errors import InvariantError

if TYPE_CHECKING:
    from compute_api_types.meta import Resource

PlaneName = NewType("PlaneName", str)
Uid = NewType("Uid", str)


class Role(StrEnum):
    """The role of a plane; metrics are labelled by role and never by plane name."""

    HOME = "home"
    ROOT = "root"
    PROJECT = "project"
    HUB = "hub"
    CELL = "cell"
    QUOTA = "quota"


class Kind(msgspec.Struct, frozen=True, order=True, gc=False):
    """A kind of the API, with its name in URLs (`plural`) and in objects (`kind`)."""

    group: str  # "" is the core group
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    # Read as `PartialObjectMetadata`, of which only our annotations are kept: no cache of such a
    # kind ever holds a value of the object. The kind with values is another one, of other keys.
    is_metadata_only: bool = False
    # Read live, for one write: its values stay in no memory of the process after that, neither
    # decoded nor in a refused intent. Such a kind is never watched.
    is_confidential: bool = False

    @classmethod
    def of(cls, resource: Resource) -> Kind:
        """The kind of a model of the API types."""
        return cls(
            group=resource.group,
            version=resource.version,
            plural=resource.plural,
            kind=resource.kind,
            namespaced=resource.namespaced,
        )

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @override
    def __str__(self) -> str:
        return self.kind


class ObjectKey(msgspec.Struct, frozen=True, order=True, gc=False):
    """One object of one plane; a key does not contain what happened to the object, so that equal
    keys of a queue are one.
    """

    plane: PlaneName
    kind: Kind
    namespace: str  # "" for kinds without namespaces
    name: str

    def __post_init__(self) -> None:
        if not self.plane:
            raise InvariantError(f"building a key for {self.kind.kind} {self.name!r}: no plane")
        if not self.name:
            raise InvariantError(f"building a key for {self.kind.kind}: no name")
        if self.kind.namespaced != bool(self.namespace):
            raise InvariantError(
                f"building a key for {self.kind.kind} {self.name!r}: namespace {self.namespace!r} "
                f"does not fit a kind that is {'' if self.kind.namespaced else 'not '}namespaced"
            )

    @override
    def __str__(self) -> str:
        path = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.plane}://{self.kind.kind}/{path}"
