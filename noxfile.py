"""Sessions for every check, test, build and release; CI calls nothing else.

`nox -s NAME -- ARGS…`, or `./dev NAME ARGS…` where no nox is at hand. Sessions install what
`locks/` pins, by hash, and our own packages editable beside it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import nox

sys.path.insert(0, str(Path(__file__).parent))  # `tools` is found however nox was started
from tools.locks import TESTS, resolve
from tools.workspace import OPERATORS, PACKAGES, PYTHONS, Package, find_python

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["test"]
nox.options.error_on_external_run = True

SIDE_BY_SIDE: Final = ("--numprocesses", "auto", "--dist", "load")


def sync(session: nox.Session, lock: str, packages: tuple[str, ...]) -> None:
    """Makes the environment exactly what the lock has, and installs our packages beside it."""
    prepare_uv()
    locked = ("--require-hashes", f"locks/{lock}.txt")
    session.run_install("uv", "pip", "--quiet", "sync", *locked, external=True)
    install_ours(session, packages)


def prepare_uv() -> None:
    os.environ["UV_PYTHON_DOWNLOADS"] = "never"
    # A company's own index has a company's own certificate authority: trust what the system trusts.
    os.environ.setdefault("UV_SYSTEM_CERTS", "true")


def install_ours(session: nox.Session, packages: tuple[str, ...]) -> None:
    ours = [part for folder in packages for part in ("--editable", f"packages/{folder}")]
    if ours:  # uv refuses to install nothing
        session.run_install("uv", "pip", "--quiet", "install", "--no-deps", *ours, external=True)


def sync_dev(session: nox.Session) -> None:
    sync(session, "dev", PACKAGES)


def tool(session: nox.Session, name: str, *arguments: str) -> None:
    session.run("python", "-m", f"tools.{name}", *arguments)


@nox.session
def check(session: nox.Session) -> None:
    """Format, lint, import contracts, types twice, locks, generated files, then `unit`."""
    sync_dev(session)
    session.run("ruff", "format", "--check", "--quiet")
    session.run("ruff", "check", "--quiet")
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": "."})
    tool(session, "type_checks")
    tool(session, "locks", "--check")
    for name in GENERATED:
        tool(session, name, "--check")
    tool(session, "rendered", "--digests")
    parts = [f"e2e/{part}/tests/unit" for part in ("demo", "deploy_checks/monitoring", "harness")]
    session.run("pytest", *SIDE_BY_SIDE, "tests", *parts, *session.posargs)
    for folder in PACKAGES:
        session.notify(f"unit({folder})")


def unit_tests_of(folder: str) -> list[str]:
    levels = [f"packages/{folder}/tests/{level}" for level in ("unit", "property")]
    return [path for path in levels if Path(path).exists()]


@nox.session
@nox.parametrize("folder", [nox.param(folder, id=folder) for folder in PACKAGES])
def unit(session: nox.Session, folder: str) -> None:
    """Unit and property tests of each package, in an environment made for that package alone.

    Those of an operator are measured: it prints which branches of `plan` and `status` none takes.
    """
    sync(session, f"{folder}-tests", (*Package(folder).siblings(), folder))
    paths = unit_tests_of(folder)
    if folder in OPERATORS and not session.posargs:  # a part of the tests reaches a part of it
        tool(session, "decision_coverage", folder, *SIDE_BY_SIDE, *paths)
    else:
        session.run("pytest", *SIDE_BY_SIDE, *paths, *session.posargs)


@nox.session
@nox.parametrize(
    "python,folder",
    [nox.param(find_python(PYTHONS[0]), folder, id=folder) for folder in PACKAGES],
)
def lowest(session: nox.Session, folder: str) -> None:
    """Unit and property tests with the lowest releases that `pyproject.toml` allows."""
    chosen = str(session.cache_dir / f"lowest-{folder}.txt")
    prepare_uv()
    command = resolve(TESTS[folder], chosen, "--resolution", "lowest-direct", "--upgrade")
    session.run_install(*command, silent=True, external=True)
    session.run_install("uv", "pip", "--quiet", "sync", chosen, external=True)
    install_ours(session, (*Package(folder).siblings(), folder))
    session.run("pytest", *SIDE_BY_SIDE, *unit_tests_of(folder), *session.posargs)


def tests_of(level: str) -> list[str]:
    """The folders of one level of tests, in every package that has it."""
    return [str(path) for path in sorted(Path("packages").glob(f"*/tests/{level}"))]


@nox.session
@nox.parametrize("python", [nox.param(find_python(minor), id=minor) for minor in PYTHONS])
def pythons(session: nox.Session) -> None:
    """Unit, property and contract tests on every Python promised; nox names one that is missing."""
    sync_dev(session)
    levels = [path for level in ("unit", "property", "contract") for path in tests_of(level)]
    session.run("pytest", "-n", "auto", "--dist", "worksteal", *levels, *session.posargs)


@nox.session
def stories(session: nox.Session) -> None:
    """Rollouts as golden text, on an in-memory world."""
    sync_dev(session)
    session.run("pytest", *tests_of("stories"), *session.posargs)


@nox.session
def contract(session: nox.Session) -> None:
    """What a port or a fake owes, on simulated planes."""
    sync_dev(session)
    # A few tests take as long as hundreds of others: an idle worker takes over queued tests.
    side_by_side = ("--numprocesses", "auto", "--dist", "worksteal")
    session.run("pytest", *side_by_side, *tests_of("contract"), *session.posargs)


RIGHTS_TESTS: Final = "*-operator/tests/contract/test_*_rights.py"


@nox.session
def sim(session: nox.Session) -> None:
    """Every scenario on simulated planes, every oracle after it; `-- --plan F` replays a run."""
    sync_dev(session)
    folders = (
        "e2e/scenarios",
        "e2e/oracles/tests",
        "e2e/backends/tests",
        "e2e/sweep/tests",
        "e2e/world/recorded/tests",
    )
    # The operators' own shows of every right: some are for what no scenario brings about.
    shows = () if session.posargs else sorted(map(str, Path("packages").glob(RIGHTS_TESTS)))
    if not session.posargs:
        session.run("python", "-m", "e2e.harness.deploy.rights_report", "--forget")
    session.run("pytest", "--planes", "sim", *SIDE_BY_SIDE, *folders, *shows, *session.posargs)
    if not session.posargs:  # a part of the suite does not show unused rights
        session.run("python", "-m", "e2e.harness.deploy.rights_report")
        # By themselves: their operators live in wall time, and lose their Leases where more than
        # a few demos crowd a machine.
        session.run("pytest", "--numprocesses", "2", "e2e/demo/tests/contract")


@nox.session
def sweep(session: nox.Session) -> None:
    """Faults at every point of every scenario, a share of them; `-- --all`, `--plan F`, `--pairs`.

    `--every` is for nights, as are `--pairs N`, `--histories N` and `--transitions N`;
    `--scenario NAME` and `--share K/N` choose; `.bench/sweep.json` has the figures.
    """
    sync_dev(session)
    session.run("python", "-m", "e2e.sweep", *session.posargs)


@nox.session
def seeded(session: nox.Session) -> None:
    """Known bugs, each put into a copy of the code: the tests that it names must fail."""
    sync_dev(session)
    tool(session, "seeded", *session.posargs)


@nox.session
def planes(session: nox.Session) -> None:
    """Builds the real planes: etcd, Kubernetes and Karmada."""
    sync_dev(session)
    session.run("python", "-m", "e2e.harness", "build", *session.posargs)


# Contracts with bodies that run on real servers too; the others run on simulated planes alone.
REAL_CONTRACTS: Final = (
    "packages/sim-planes/tests/contract",
    "packages/operator-kit/tests/contract/test_kit_scale.py",
    "packages/quota-client/tests/contract/test_milo_contract.py",
)
# Most tests wait for a server: two workers, each with planes of its own, take half the time. More
# would take 3 GB each. A file stays with its worker and leaves the planes as it found them.
TWO_STACKS: Final = ("--numprocesses", "2", "--dist", "loadfile")
KUBECTL_TESTS: Final = (
    "packages/sim-planes/tests/contract/test_api_server_kubectl.py",
    "e2e/backends/tests/test_pods_overlay.py",
    *("tests/test_deploy_pods.py", "tests/test_deploy_rights.py"),
    *("tests/test_install_page.py", "tests/test_migration_page.py", "tests/test_rendered.py"),
)


@nox.session
def cluster(session: nox.Session) -> None:
    """Contracts and `tests/cluster` on real planes, built first where they are not; `-- --soak`."""
    sync_dev(session)
    session.run("python", "-m", "e2e.harness", "build", "--judges")
    tool(session, "rendered", "--check")
    asked = [argument for argument in session.posargs if argument != "--soak"]
    ours = ("e2e/harness/tests/cluster", "e2e/backends/tests/cluster")
    folders = (*REAL_CONTRACTS, *ours, *tests_of("cluster"))
    session.run("pytest", "--planes", "real", *TWO_STACKS, *folders, *asked)
    # Played on simulated planes, and judged by what was built with the real ones.
    session.run("pytest", *SIDE_BY_SIDE, "e2e/deploy_checks/monitoring/tests/cluster", *asked)
    # The simulated server owes kubectl the same, and overlays over ours are rendered by it; where
    # nothing was built these are skipped, for want of a kubectl.
    session.run("python", "-m", "e2e.harness", "with-kubectl", "pytest", *KUBECTL_TESTS)
    if "--soak" in session.posargs:
        session.run("python", "-m", "e2e.harness", "soak")


@nox.session
def images(session: nox.Session) -> None:
    """Both images from their Containerfiles, and what must be true of them; needs root."""
    sync_dev(session)
    tool(session, "images", *session.posargs)


@nox.session
def e2e(session: nox.Session) -> None:
    """Scenarios on real planes; `-- --all`, `--in-cluster` with operators as pods, `--kind`."""
    sync_dev(session)
    asked = [word for word in session.posargs if word not in {*ON_PODS, WHERE_POSSIBLE}]
    chosen = next((word for word in ON_PODS if word in session.posargs), "")
    if chosen and not can_run_pods(session, ON_PODS[chosen]):
        return
    is_on_our_nodes = chosen == "--in-cluster"
    session.run("python", "-m", "e2e.harness", "build", *(("--nodes",) if is_on_our_nodes else ()))
    if chosen:
        previous = ("--previous", PREVIOUS) if "--all" in session.posargs else ()
        tool(session, "images", "--unchecked", *previous)
    backend = chosen.removeprefix("--") or "real"
    folders = (*((NODE_TESTS,) if backend == "in-cluster" else ()), "e2e/scenarios")
    # What would be released: an operator of this environment finds libraries that it ships without.
    wheels = ("--wheels",) if backend == "real" else ()
    session.run("pytest", "--planes", backend, *wheels, *folders, *asked)


# The version that a scenario of `--all` upgrades from.
PREVIOUS: Final = os.environ.get("PREVIOUS_REVISION", "HEAD~1")
# How operators run as pods, and what makes the machine fit for it.
ON_PODS: Final = {"--in-cluster": "e2e.harness.node", "--kind": "e2e.backends.kind"}
NODE_TESTS: Final = "e2e/harness/node/tests/cluster"
# For unattended runs: one line with the reason, and the run goes on.
WHERE_POSSIBLE: Final = "--where-possible"
NOT_RUN: Final = ": not run: "


def can_run_pods(session: nox.Session, module: str) -> bool:
    """Prepares the machine; a missing part is one line, and an error without `--where-possible`."""
    output = session.run("python", "-m", module, "prepare", silent=True, success_codes=[0, 3])
    line = str(output or "").strip()
    if NOT_RUN not in line:
        return True
    session.log(line)
    if WHERE_POSSIBLE not in session.posargs:
        session.error(line)
    return False


@nox.session
def browser(session: nox.Session) -> None:
    """The page of `kubectl compute ui` and the site in Debian's Chromium; `-- --where-possible`.

    Pictures go to `.site-pictures/`; `-- --keep` also renews those in `docs/pictures`.
    """
    sync_dev(session)
    if not can_run_pods(session, "e2e.browser"):
        return
    flags = {WHERE_POSSIBLE, "--keep"}
    asked = [word for word in session.posargs if word not in flags]
    if not asked:
        session.run("nox", "--session", "site", external=True)
    pictures = "docs/pictures" if "--keep" in session.posargs else ".site-pictures"
    session.run("pytest", "e2e/browser/tests", *asked, env={"BROWSER_PICTURES": pictures})
    if not asked:
        session.run("pytest", "-m", "slow", "tests/test_site.py")


@nox.session(venv_backend="none")
def test(session: nox.Session) -> None:
    """What a stranger runs: `check`, then every level of tests that needs Python alone."""
    golden = ("stories",) if tests_of("stories") else ()
    units = (f"unit({folder})" for folder in PACKAGES)
    for name in ("check", *units, *golden, "contract", "sim"):
        session.notify(name)


@nox.session
def spec(session: nox.Session) -> None:
    """Acceptance statements and fault rows → tests → last outcome per backend."""
    sync_dev(session)
    tool(session, "spec_table", *session.posargs)


@nox.session
def lock(session: nox.Session) -> None:
    """The files in `locks/`; `-- --upgrade` takes newer releases."""
    sync(session, "door", ())
    tool(session, "locks", *session.posargs)


GENERATED: Final = (
    "compatibility",
    "crds",
    "dashboard",
    "interpreter",
    "reference_api_types",
    "reference_conditions",
    "reference_configuration",
    "reference_kinds",
    "reference_metrics",
    "reference_quota_client",
)


@nox.session
def crds(session: nox.Session) -> None:
    """The CRDs in `deploy/crds`, from the models."""
    sync_dev(session)
    tool(session, "crds", *session.posargs)


@nox.session
def render(session: nox.Session) -> None:
    """`deploy/rendered`, by kubectl; `-- --check` renders and compares."""
    sync_dev(session)
    tool(session, "rendered", *session.posargs)


@nox.session
def generate(session: nox.Session) -> None:
    """All that is generated: CRDs and the pages in `docs/reference`."""
    sync_dev(session)
    for name in GENERATED:
        tool(session, name, *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The command blocks of README and tutorials, run as written, and every link; then `site`."""
    sync_dev(session)
    tool(session, "doc_commands", *session.posargs)
    session.notify("site", posargs=())


@nox.session
def site(session: nox.Session) -> None:
    """The documentation site in `.site/`, strictly, and every link of it."""
    sync(session, "site", ())
    session.run("python", "-m", "mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})
    tool(session, "site_links")


@nox.session
def wheels(session: nox.Session) -> None:
    """Each wheel alone in an empty environment, on every Python at hand, with its README."""
    sync_dev(session)
    tool(session, "wheels", *session.posargs)


def python_of_images() -> str | None:
    """Debian's own, where it is at hand: the images run it, and one that was compiled without
    profiles takes a fifth longer for the same. None: whichever runs nox.
    """
    path = shutil.which("python3", path="/usr/bin")
    is_new = "import sys; sys.exit(sys.version_info < (3, 11))"
    if path is None or subprocess.run([path, "-c", is_new], check=False).returncode:
        return None
    return path


@nox.session(python=python_of_images())
def bench(session: nox.Session) -> None:
    """One benchmark: `-- api`; prints ratios and writes `.bench/NAME.json`."""
    sync_dev(session)
    tool(session, "bench", *session.posargs)


@nox.session
def release(session: nox.Session) -> None:
    """One package's release: `-- quota-client 0.1.0`; changelog, version, commit, tag, wheel."""
    sync_dev(session)
    tool(session, "release", *session.posargs)


@nox.session
def rehearsal(session: nox.Session) -> None:
    """A release of every package and of the installation, on a throw-away clone; `-- 0.1.0`."""
    sync_dev(session)
    tool(session, "rehearsal", *session.posargs)


@nox.session
def demo(session: nox.Session) -> None:
    """The whole chain in a minute; `-- --keep` leaves it up, `-- --planes real`."""
    sync_dev(session)
    if "real" in session.posargs:
        session.run("python", "-m", "e2e.harness", "build")
    # Ctrl-C reaches the demo too, which takes down what it started; that needs its time.
    session.run(
        "python", "-m", "e2e.demo", *session.posargs, interrupt_timeout=60, terminate_timeout=30
    )
