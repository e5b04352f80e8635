"""The gauges that the alerts on referenced data read, during their incidents; promtool judges the
rules themselves (`tests/cluster`).
"""

from __future__ import annotations

import pytest

from e2e.deploy_checks.monitoring import incidents
from e2e.deploy_checks.monitoring.alert_cases import case_of
from e2e.deploy_checks.monitoring.alert_runs import AlertCase, record
from e2e.world.scenario import DFW, MANAGEMENT

UNDISTRIBUTED = "compute_referenced_data_undistributed"
WAITING = "compute_referenced_data_waiting_instances"


@pytest.mark.parametrize(
    ("case", "is_undistributed"),
    [
        (case_of(incidents.karmada_distributes_no_dependencies), True),
        (case_of(incidents.a_cell_refuses_the_copies), False),
    ],
    ids=lambda value: value.name if isinstance(value, AlertCase) else None,
)
def test_data_that_stays_away_shows_in_its_gauges(case: AlertCase, is_undistributed: bool) -> None:
    recorded = record(case)
    (row,) = recorded[MANAGEMENT].print_rows(lambda name: name == UNDISTRIBUTED)
    assert (" 1x" in row["values"]) is is_undistributed
    rows = recorded[DFW.name].print_rows(lambda name: name == WAITING)
    (waiting,) = [row for row in rows if 'reason="AwaitingPropagation"' in row["series"]]
    assert waiting["values"].startswith("_ 1x")
    assert waiting["values"].split()[-1].startswith("0x")
