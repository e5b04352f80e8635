from __future__ import annotations

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.planes.topology import (
    FULL,
    TOPOLOGIES,
    PlaneSpec,
    Role,
    Topology,
    a_cell,
    a_project,
)

A_HUB = PlaneSpec("hub", Role.HUB)
A_ROOT = PlaneSpec("root", Role.ROOT)


def test_full_topology_is_the_one_of_the_specification() -> None:
    assert [plane.name for plane in FULL.planes] == ["root", "p1", "p2", "hub", "dfw-1", "ord-1"]
    assert {cell.name: cell.city for cell in FULL.of_role(Role.CELL)} == {
        "dfw-1": "DFW",
        "ord-1": "ORD",
    }


def test_smaller_topologies_are_there_by_name() -> None:
    assert sorted(TOPOLOGIES) == ["full", "hub-and-cell", "single"]
    assert [plane.role for plane in TOPOLOGIES["hub-and-cell"].planes] == [Role.HUB, Role.CELL]
    assert TOPOLOGIES["single"].hub is None


@pytest.mark.parametrize(
    ("planes", "problem"),
    [
        ((a_cell("dfw-1", "DFW"),), "a cell needs exactly one hub"),
        ((a_project("p1"),), "a project needs exactly one root"),
        ((A_HUB, PlaneSpec("hub-2", Role.HUB)), "exactly one hub"),
        ((A_ROOT, a_project("root")), "two planes share a name"),
        ((A_ROOT, a_project("P_1")), "is no DNS label"),
        ((A_ROOT, a_project("p" * 49)), "is no DNS label"),
    ],
)
def test_topology_that_cannot_be_is_refused(planes: tuple[PlaneSpec, ...], problem: str) -> None:
    with pytest.raises(PlanesError, match=problem):
        Topology(planes)
