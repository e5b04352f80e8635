"""Which world scenarios are played in, as chosen on the command line, and how long each took."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compute_sim_planes.fault_plan_files import parse_plan
from compute_sim_planes.fault_plans import FaultPlan
from e2e.backends.sim.stage import SimStage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.world import Stage

# How long each scenario took by itself: those that run side by side wait for each other.
SECONDS = pytest.StashKey[dict[str, float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plan", help="a fault plan (compute.faults/v1) to play again", default=None)
    parser.addoption("--all", action="store_true", help="scenarios that wait for minutes, too")
    parser.addoption(
        "--wheels", action="store_true", help="on real planes, operators from wheels built for it"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--planes") == "real":
        # Only there: the backend `real` imports what simulated runs need not have.
        from e2e.backends.real.collecting import arrange

        items[:], left_out = arrange(items, has_slow=bool(config.getoption("--all")))
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def real_stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """One stack for all scenarios; what no single one is to blame for is told at its end."""
    from e2e.backends.real.collecting import learn
    from e2e.backends.real.stage import RealStage
    from e2e.backends.real.theatre import Making, Theatre

    learnt = [planned for item in request.session.items if (planned := learn(item))]
    theatre = Theatre(Making(has_wheels=bool(request.config.getoption("--wheels"))))
    theatre.open()
    stage = RealStage(theatre, {planned.name: planned for planned in learnt})
    stage.open()
    request.config.stash[SECONDS] = stage.seconds
    violations: list[str] = []
    try:
        yield stage
        if not request.session.shouldfail:  # whoever asked for the first failure only has it
            violations = stage.judge_whole()
    finally:
        stage.close()
        theatre.close()
    assert not violations, "\n".join(violations)


@pytest.fixture(scope="session", autouse=True)
def _stage_is_there_before_any_test(request: pytest.FixtureRequest) -> None:
    """Its threads are the session's: begun inside a test, that test would answer for them."""
    if request.config.getoption("--planes") == "real":
        request.getfixturevalue("real_stage")


def _plan_of(config: pytest.Config) -> FaultPlan | None:
    path = config.getoption("--plan", None)
    return None if path is None else parse_plan(Path(str(path)).read_bytes())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Scenario × backend × seconds."""
    backend = str(config.getoption("--planes"))
    done = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if isinstance(report, pytest.TestReport)
        and report.when == "call"
        and report.nodeid.startswith("e2e/scenarios/")
    ]
    if done:
        terminalreporter.section(f"scenarios on {backend} planes")
    for report in sorted(done, key=lambda report: report.nodeid):
        test = report.nodeid.rpartition("::")[2]
        took = config.stash.get(SECONDS, dict[str, float]()).get(test, report.duration)
        name = test.removeprefix("test_").replace("_", " ")
        terminalreporter.write_line(f"{report.outcome:6} {backend:4} {took:7.2f} s  {name}")


@pytest.fixture
def stage(request: pytest.FixtureRequest, planes_backend: str) -> Stage:
    if planes_backend == "real":
        found: Stage = request.getfixturevalue("real_stage")
        return found
    plan = _plan_of(request.config)
    if plan is not None and plan.scenario != request.node.name:
        pytest.skip(f"the plan is about {plan.scenario}")
    return SimStage(plan)
