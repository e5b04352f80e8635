"""Which world scenarios are played in, as chosen on the command line, and how long each took."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from compute_sim_planes.fault_plan_files import parse_plan
from compute_sim_planes.fault_plans import FaultPlan
from e2e.backends.sim.stage import SimStage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.backends.real.stage import Planned, RealStage
    from e2e.world import Stage

# How long each scenario took by itself: those that run side by side wait for each other.
SECONDS = pytest.StashKey[dict[str, float]]()
# What of deploy/ a session used, where its backend tells.
USE = pytest.StashKey[tuple[str, ...]]()
# Backends on which operators are pods.
WITH_PODS: Final = frozenset({"in-cluster", "kind"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plan", help="a fault plan (compute.faults/v1) to play again", default=None)
    parser.addoption("--all", action="store_true", help="scenarios that wait for minutes, too")
    parser.addoption(
        "--wheels", action="store_true", help="on real planes, operators from wheels built for it"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    backend, has_all = config.getoption("--planes"), bool(config.getoption("--all"))
    if backend == "sim":
        return
    # Only there: the backend `real` imports what simulated runs need not have.
    from e2e.backends.in_cluster.core import select
    from e2e.backends.real.collecting import arrange

    items[:], left_out = arrange(items, has_slow=has_all)
    if backend in WITH_PODS and not has_all and not config.getoption("keyword"):
        items[:], others = select(items)
        left_out += others
    config.hook.pytest_deselected(items=left_out)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Scenarios about pods are for backends that have some; elsewhere there is nothing to play."""
    if collection_path.name == "test_pods.py" and config.getoption("--planes") not in WITH_PODS:
        return True
    return None


def _open_stage(config: pytest.Config, planned: list[Planned]) -> RealStage:
    if config.getoption("--planes") == "in-cluster":
        from e2e.backends.in_cluster.stage import open_stage as open_on_pods

        return open_on_pods(planned)
    if config.getoption("--planes") == "kind":
        from e2e.backends.kind.stage import open_stage as open_on_kind

        return open_on_kind(planned)
    from e2e.backends.real.stage import RealStage
    from e2e.backends.real.theatre import Making, Theatre

    theatre = Theatre(Making(has_wheels=bool(config.getoption("--wheels"))))
    theatre.open()
    stage = RealStage(theatre, {one.name: one for one in planned})
    stage.open()
    return stage


@pytest.fixture(scope="session")
def real_stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """One stack for all scenarios; what no single one is to blame for is told at its end."""
    from e2e.backends.real.collecting import learn

    learnt = [planned for item in request.session.items if (planned := learn(item))]
    stage = _open_stage(request.config, learnt)
    request.config.stash[SECONDS] = stage.seconds
    violations: list[str] = []
    try:
        yield stage
        if not request.session.shouldfail:  # whoever asked for the first failure only has it
            violations = stage.judge_whole()
            used = stage.describe_use()
            request.config.stash[USE] = used.lines
            if _is_whole(request.session):
                violations += used.faults
    finally:
        stage.close()
        stage.theatre.close()
    assert not violations, "\n".join(violations)


def _is_whole(session: pytest.Session) -> bool:
    """Whether everything is played, so that what nobody used is there in vain."""
    from e2e.backends.in_cluster.core import covers

    has_all = bool(session.config.getoption("--all"))
    is_narrowed = bool(session.config.getoption("keyword"))
    return has_all and not is_narrowed and covers(session.items, Path(__file__).parent)


@pytest.fixture(scope="session", autouse=True)
def _stage_is_there_before_any_test(request: pytest.FixtureRequest) -> None:
    """Its threads are the session's: begun inside a test, that test would answer for them."""
    if request.config.getoption("--planes") != "sim":
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
        terminalreporter.write_line(f"{report.outcome:6} {backend:10} {took:7.2f} s  {name}")
    if used := config.stash.get(USE, ()):
        terminalreporter.section("what of deploy/ was used")
    for line in used:
        terminalreporter.write_line(line)


@pytest.fixture
def stage(request: pytest.FixtureRequest, planes_backend: str) -> Stage:
    if planes_backend != "sim":
        found: Stage = request.getfixturevalue("real_stage")
        return found
    plan = _plan_of(request.config)
    if plan is not None and plan.scenario != request.node.name:
        pytest.skip(f"the plan is about {plan.scenario}")
    return SimStage(plan)
