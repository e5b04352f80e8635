from __future__ import annotations

from e2e.backends.real.environment import (
    SINGLE_MANAGEMENT,
    can_share,
    derive_arrangement,
    name_arrangement,
)
from e2e.world.port import DFW, ORD, Cell, Needs

UNTOLD = Cell("ord-1", "ORD", has_city_setting=False)


def test_scenarios_that_ask_for_nothing_special_share_the_usual_operators() -> None:
    for needs in (Needs(), Needs(cells=(DFW, ORD), has_quota=True, projects=2)):
        assert can_share(needs)
        assert name_arrangement(needs) == name_arrangement(Needs())


def test_scenarios_that_need_operators_of_another_make_share_those_with_their_like() -> None:
    for needs in (
        Needs(runs_cells=False),
        Needs(replicas=2),
        Needs(cells=(DFW, UNTOLD)),
        Needs(settings={"management": {"networking": "off"}}),
    ):
        assert can_share(needs), needs
        assert name_arrangement(needs) != name_arrangement(Needs()), needs
    assert name_arrangement(Needs(runs_cells=False)) == name_arrangement(
        Needs(runs_cells=False, projects=2)
    )


def test_scenarios_that_change_what_others_stand_on_run_alone() -> None:
    for needs in (Needs(is_alone=True), Needs(is_single=True), Needs(has_networking=False)):
        assert not can_share(needs), needs


def test_cells_without_operators_are_stopped_and_the_others_run() -> None:
    wanted = derive_arrangement(Needs(runs_cells=False))
    assert {name: replicas for name, (replicas, _) in wanted.items()} == {
        "management": 1,
        "dfw-1": 0,
        "ord-1": 0,
        "single": 0,
        SINGLE_MANAGEMENT: 0,
    }


def test_a_cell_without_city_setting_gets_none() -> None:
    wanted = derive_arrangement(Needs(cells=(DFW, UNTOLD)))
    assert wanted["ord-1"] == (1, {"cell": {"cityCode": ""}})
    assert wanted["dfw-1"] == (1, {})
