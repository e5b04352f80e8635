"""Chooses the scheduler of scenarios by `--planes` and reports how long each scenario took."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from compute_sim_planes.faults.plan_files import parse_plan
from compute_sim_planes.faults.plans import FaultPlan
from e2e.backends.sim.scheduler import SimScheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.backends.real.scheduler import PlannedScenario, RealScheduler
    from e2e.world.scenario import ScenarioScheduler

# Duration of each scenario by itself; a test's duration includes waiting for the others.
SECONDS = pytest.StashKey[dict[str, float]]()
# The session's usage report, on backends that have one.
USE = pytest.StashKey[tuple[str, ...]]()
# Backends that run operators as pods.
WITH_PODS: Final = frozenset({"in-cluster", "kind"})
OF_PODS: Final = frozenset({"test_pods.py", "test_pod_provider.py", "test_pod_autoscaling.py"})


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
    # Imported here only, because simulated runs may lack the dependencies of `real`.
    from e2e.backends.pods.core import select
    from e2e.backends.real.ordering import order_items

    items[:], left_out = order_items(items, has_slow=has_all)
    if backend in WITH_PODS and not has_all and not config.getoption("keyword"):
        items[:], others = select(items)
        left_out += others
    config.hook.pytest_deselected(items=left_out)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Scenarios about pods run only on backends with pods."""
    if collection_path.name in OF_PODS and config.getoption("--planes") not in WITH_PODS:
        return True
    return None


def _open_scheduler(config: pytest.Config, planned: list[PlannedScenario]) -> RealScheduler:
    if config.getoption("--planes") == "in-cluster":
        from e2e.backends.pods.scheduler import open_scheduler as open_on_pods

        return open_on_pods(planned)
    if config.getoption("--planes") == "kind":
        from e2e.backends.kind.scheduler import open_scheduler as open_on_kind

        return open_on_kind(planned)
    from e2e.backends.real.environment import EnvironmentOptions, RealEnvironment
    from e2e.backends.real.scheduler import RealScheduler

    environment = RealEnvironment(EnvironmentOptions(has_wheels=bool(config.getoption("--wheels"))))
    environment.open()
    scheduler = RealScheduler(environment, {one.name: one for one in planned})
    scheduler.open()
    return scheduler


@pytest.fixture(scope="session")
def real_scheduler(request: pytest.FixtureRequest) -> Iterator[ScenarioScheduler]:
    """One stack for all scenarios; violations of no single scenario fail the session's end."""
    from e2e.backends.real.ordering import read_planned

    learnt = [planned for item in request.session.items if (planned := read_planned(item))]
    scheduler = _open_scheduler(request.config, learnt)
    request.config.stash[SECONDS] = scheduler.seconds
    violations: list[str] = []
    try:
        yield scheduler
        if not request.session.shouldfail:  # with `--exitfirst` the failure was reported already
            violations = scheduler.find_session_violations()
            used = scheduler.describe_use()
            request.config.stash[USE] = used.lines
            if _is_whole(request.session):
                violations += used.faults
    finally:
        scheduler.close()
        scheduler.environment.close()
    assert not violations, "\n".join(violations)


def _is_whole(session: pytest.Session) -> bool:
    """Whether all scenarios run, so that unused rights are a fault."""
    from e2e.backends.pods.core import covers

    has_all = bool(session.config.getoption("--all"))
    is_narrowed = bool(session.config.getoption("keyword"))
    return has_all and not is_narrowed and covers(session.items, Path(__file__).parent)


@pytest.fixture(scope="session", autouse=True)
def _scheduler_starts_before_any_test(request: pytest.FixtureRequest) -> None:
    """Starts it outside of tests: threads started in a test would count as leaked by it."""
    if request.config.getoption("--planes") != "sim":
        request.getfixturevalue("real_scheduler")


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
def scheduler(request: pytest.FixtureRequest, planes_backend: str) -> ScenarioScheduler:
    if planes_backend != "sim":
        scheduler: ScenarioScheduler = request.getfixturevalue("real_scheduler")
        return scheduler
    plan = _plan_of(request.config)
    if plan is not None and plan.scenario != request.node.name:
        pytest.skip(f"the plan is about {plan.scenario}")
    return SimScheduler(plan)
