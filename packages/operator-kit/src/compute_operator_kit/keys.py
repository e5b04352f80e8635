"""What is talked about: a kind of object, and one object of that kind on one plane.

The plane is part of every key, so that no worker can mean "the same name somewhere else". An empty
plane name is a programming error and raises here; nothing anywhere falls back to the home plane.
Queues and stores build, hash and compare keys a hundred times per change, so both are
`msgspec.Struct`s, which do that in C. Pure values, no I/O.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NewType

import msgspec
from typing_extensions import override

from compute_operator_kit.errors import InvariantError

PlaneName = NewType("PlaneName", str)
Uid = NewType("Uid", str)


class Role(StrEnum):
    """What a plane is for; the only thing about a plane that metrics may name."""

    HOME = "home"
    ROOT = "root"
    PROJECT = "project"
    HUB = "hub"
    CELL = "cell"
    QUOTA = "quota"


class Kind(msgspec.Struct, frozen=True, order=True, gc=False):
    """A kind as the API names it: what stands in URLs (`plural`) and what stands in objects
    (`kind`).
    """

    group: str  # "" is the core group
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @override
    def __str__(self) -> str:
        return self.kind


class ObjectKey(msgspec.Struct, frozen=True, order=True, gc=False):
    """One object of one plane; equal keys collapse in queues, and a key never says what happened to
    the object.
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
