"""The first passes of all Instances, before which a cell does not testify."""

from __future__ import annotations

from compute_cell_operator.first_passes import FirstPasses
from compute_cell_operator.planes import CELL, INSTANCE
from compute_operator_kit.core.keys import ObjectKey

WEB, API = (ObjectKey(CELL, INSTANCE, "ns", name) for name in ("web-0", "api-0"))


def test_every_instance_needs_a_pass_of_every_controller() -> None:
    passes = FirstPasses(("instance", "write-back"))
    assert not passes.check((WEB, API))
    for key in (WEB, API):
        passes.note("instance", key)
    passes.note("write-back", WEB)
    assert not passes.check((WEB, API))
    passes.note("write-back", API)
    assert passes.check((WEB, API))


def test_an_instance_that_is_gone_is_not_waited_for() -> None:
    passes = FirstPasses(("instance",))
    passes.note("instance", WEB)
    assert not passes.check((WEB, API))
    assert passes.check((WEB,))


def test_once_complete_it_stays_so_and_keeps_nothing() -> None:
    passes = FirstPasses(("instance",))
    assert passes.check(())
    passes.note("instance", WEB)
    assert passes.check((API,))
