"""The planes of a stack as data: names, roles, and Karmada's rates. Pure.

A topology is a printable value; the stack starts what it describes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from e2e.harness.errors import PlanesError

CITY_LABEL: Final = "topology.datum.net/city-code"
# Plane names become etcd prefixes, file names, contexts and Karmada cluster names.
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")


class Role(StrEnum):
    """The role of a plane for the operators."""

    ROOT = "root"
    PROJECT = "project"
    HUB = "hub"
    CELL = "cell"
    SINGLE = "single"


class Rates(StrEnum):
    """Karmada's request rates: quick for tests, or its defaults."""

    QUICK = "quick"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class PlaneSpec:
    """A plane to start: an API server with its own etcd prefix and controller-manager."""

    name: str
    role: Role
    city: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """The planes of one stack."""

    planes: tuple[PlaneSpec, ...]
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(plane.name for plane in self.planes))
        for problem in (_bad_name(self), _repeated_name(self), _missing_partner(self)):
            if problem:
                raise PlanesError(f"reading the topology: {problem}", remedy="correct its planes")

    def of_role(self, role: Role) -> tuple[PlaneSpec, ...]:
        return tuple(plane for plane in self.planes if plane.role is role)

    @property
    def root(self) -> PlaneSpec | None:
        return next(iter(self.of_role(Role.ROOT)), None)

    @property
    def hub(self) -> PlaneSpec | None:
        return next(iter(self.of_role(Role.HUB)), None)


def _bad_name(topology: Topology) -> str:
    bad = [plane.name for plane in topology.planes if not _NAME.fullmatch(plane.name)]
    return f"{bad[0]!r} is no DNS label of at most 48 characters" if bad else ""


def _repeated_name(topology: Topology) -> str:
    return "two planes share a name" if len(topology.names) != len(topology.planes) else ""


def _missing_partner(topology: Topology) -> str:
    for partner, dependent in ((Role.ROOT, Role.PROJECT), (Role.HUB, Role.CELL)):
        count = len(topology.of_role(partner))
        if count > 1 or (topology.of_role(dependent) and not count):
            return f"a {dependent} needs exactly one {partner}"
    return ""


def a_cell(name: str, city: str) -> PlaneSpec:
    return PlaneSpec(name, Role.CELL, city)


def a_project(name: str) -> PlaneSpec:
    return PlaneSpec(name, Role.PROJECT)


_ROOT: Final = PlaneSpec("root", Role.ROOT)
_HUB: Final = PlaneSpec("hub", Role.HUB)
_DFW: Final = a_cell("dfw-1", "DFW")
_ORD: Final = a_cell("ord-1", "ORD")

FULL: Final = Topology((_ROOT, a_project("p1"), a_project("p2"), _HUB, _DFW, _ORD))
HUB_AND_CELL: Final = Topology((_HUB, _DFW))
SINGLE: Final = Topology((PlaneSpec("single", Role.SINGLE),))
TOPOLOGIES: Final = {"full": FULL, "hub-and-cell": HUB_AND_CELL, "single": SINGLE}
