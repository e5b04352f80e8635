"""The only door: every check, test, build and release is a session here, and CI calls nothing else.

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
from tools.workspace import PACKAGES, PYTHONS, Package, find_python

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["test"]
nox.options.error_on_external_run = True

SIDE_BY_SIDE: Final = ("--numprocesses", "auto", "--dist", "load")


def sync(session: nox.Session, lock: str, packages: tuple[str, ...]) -> None:
    """Makes the environment exactly what the lock says, and puts our packages beside it."""
    os.environ["UV_PYTHON_DOWNLOADS"] = "never"
    # A company's own index has a company's own certificate authority: trust what the system trusts.
    os.environ.setdefault("UV_SYSTEM_CERTS", "true")
    quiet = ("uv", "pip", "--quiet")
    session.run_install(*quiet, "sync", "--require-hashes", f"locks/{lock}.txt", external=True)
    ours = [part for folder in packages for part in ("--editable", f"packages/{folder}")]
    session.run_install(*quiet, "install", "--no-deps", *ours, external=True)


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
    parts = [f"e2e/{part}/tests/unit" for part in ("demo", "monitoring", "planes")]
    session.run("pytest", *SIDE_BY_SIDE, "tests", *parts, *session.posargs)
    for folder in PACKAGES:
        session.notify(f"unit({folder})")


@nox.session
@nox.parametrize("folder", [nox.param(folder, id=folder) for folder in PACKAGES])
def unit(session: nox.Session, folder: str) -> None:
    """Unit and property tests of each package, in an environment made for that package alone."""
    sync(session, f"{folder}-tests", (*Package(folder).siblings(), folder))
    levels = [f"packages/{folder}/tests/{level}" for level in ("unit", "property")]
    paths = [path for path in levels if Path(path).exists()]
    session.run("pytest", *SIDE_BY_SIDE, *paths, *session.posargs)


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
    """Rollouts told as golden text, on an in-memory world."""
    sync_dev(session)
    session.run("pytest", *tests_of("stories"), *session.posargs)


@nox.session
def contract(session: nox.Session) -> None:
    """What a port or a fake owes, on simulated planes."""
    sync_dev(session)
    # A few take as long as hundreds of others: who is done takes over from who is not.
    side_by_side = ("--numprocesses", "auto", "--dist", "worksteal")
    session.run("pytest", *side_by_side, *tests_of("contract"), *session.posargs)


RIGHTS_TESTS: Final = "*-operator/tests/contract/test_*_rights.py"


@nox.session
def sim(session: nox.Session) -> None:
    """Every scenario on simulated planes, every oracle after it; `-- --plan F` replays a run."""
    sync_dev(session)
    folders = ("e2e/scenarios", "e2e/faults/tests", "e2e/backends/tests")
    # The operators' own shows of every right: some are for what no scenario brings about.
    shows = () if session.posargs else sorted(map(str, Path("packages").glob(RIGHTS_TESTS)))
    if not session.posargs:
        session.run("python", "-m", "e2e.rights", "--forget")
    session.run("pytest", "--planes", "sim", *SIDE_BY_SIDE, *folders, *shows, *session.posargs)
    if not session.posargs:  # a part of the suite says nothing about rights nobody used
        session.run("python", "-m", "e2e.rights")
        # By themselves: their operators live in wall time, and lose their Leases where more than
        # a few demos crowd a machine.
        session.run("pytest", "--numprocesses", "2", "e2e/demo/tests/contract")


@nox.session
def planes(session: nox.Session) -> None:
    """Builds the real planes: etcd, Kubernetes and Karmada."""
    sync_dev(session)
    session.run("python", "-m", "e2e.planes", "build", *session.posargs)


# Contracts whose bodies run on real servers too; the others are played on simulated planes alone.
REAL_CONTRACTS: Final = (
    "packages/sim-planes/tests/contract",
    "packages/quota-client/tests/contract/test_milo_contract.py",
)
# Most tests wait for a server: two workers, each with planes of its own, take half the time. More
# would take 3 GB each. A file stays with its worker and leaves the planes as it found them.
TWO_STACKS: Final = ("--numprocesses", "2", "--dist", "loadfile")
KUBECTL_CONTRACT: Final = "packages/sim-planes/tests/contract/test_api_server_kubectl.py"


@nox.session
def cluster(session: nox.Session) -> None:
    """Contracts and `tests/cluster` on real planes, built first where they are not; `-- --soak`."""
    sync_dev(session)
    session.run("python", "-m", "e2e.planes", "build", "--judges")
    asked = [argument for argument in session.posargs if argument != "--soak"]
    folders = (*REAL_CONTRACTS, "e2e/planes/tests/cluster", *tests_of("cluster"))
    session.run("pytest", "--planes", "real", *TWO_STACKS, *folders, *asked)
    # Played on simulated planes, and judged by what was built with the real ones.
    session.run("pytest", *SIDE_BY_SIDE, "e2e/monitoring/tests/cluster", *asked)
    # The simulated server owes kubectl the same, and where nothing was built there is none.
    session.run("python", "-m", "e2e.planes", "with-kubectl", "pytest", KUBECTL_CONTRACT)
    if "--soak" in session.posargs:
        session.run("python", "-m", "e2e.planes", "soak")


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
    session.run("python", "-m", "e2e.planes", "build", *(("--nodes",) if is_on_our_nodes else ()))
    if chosen:
        tool(session, "images", "--unchecked")
    backend = chosen.removeprefix("--") or "real"
    folders = (*((NODE_TESTS,) if backend == "in-cluster" else ()), "e2e/scenarios")
    # What would be released: an operator of this environment finds libraries that it ships without.
    wheels = ("--wheels",) if backend == "real" else ()
    session.run("pytest", "--planes", backend, *wheels, *folders, *asked)


# How operators run as pods, and what makes the machine fit for it.
ON_PODS: Final = {"--in-cluster": "e2e.planes.node", "--kind": "e2e.backends.kind"}
NODE_TESTS: Final = "e2e/planes/node/tests/cluster"
# For whoever has nobody to ask: says in one line why it was not run, and goes on.
WHERE_POSSIBLE: Final = "--where-possible"
NOT_RUN: Final = ": not run: "


def can_run_pods(session: nox.Session, module: str) -> bool:
    """Prepares the machine; what cannot be had is one line, and an error unless told otherwise."""
    said = session.run("python", "-m", module, "prepare", silent=True, success_codes=[0, 3])
    line = str(said or "").strip()
    if NOT_RUN not in line:
        return True
    session.log(line)
    if WHERE_POSSIBLE not in session.posargs:
        session.error(line)
    return False


@nox.session(venv_backend="none")
def test(session: nox.Session) -> None:
    """What a stranger runs: `check`, then every level of tests that needs Python alone."""
    told = ("stories",) if tests_of("stories") else ()
    for name in ("check", *(f"unit({folder})" for folder in PACKAGES), *told, "contract", "sim"):
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
    "crds",
    "dashboard",
    "interpreter",
    "reference_conditions",
    "reference_configuration",
    "reference_metrics",
    "reference_quota_client",
)


@nox.session
def crds(session: nox.Session) -> None:
    """The CRDs in `deploy/crds`, from the models."""
    sync_dev(session)
    tool(session, "crds", *session.posargs)


@nox.session
def generate(session: nox.Session) -> None:
    """All that is generated: CRDs and the pages in `docs/reference`."""
    sync_dev(session)
    for name in GENERATED:
        tool(session, name, *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The command blocks of README and tutorials, run as written, and every link."""
    sync_dev(session)
    tool(session, "doc_commands", *session.posargs)


def python_of_images() -> str | None:
    """Debian's own, where it is at hand: the images run it, and one that was compiled without
    profiles takes a fifth longer for the same. None: whichever runs nox.
    """
    found = shutil.which("python3", path="/usr/bin")
    is_new = "import sys; sys.exit(sys.version_info < (3, 11))"
    if found is None or subprocess.run([found, "-c", is_new], check=False).returncode:
        return None
    return found


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
def demo(session: nox.Session) -> None:
    """The whole chain, told in a minute; `-- --keep` leaves it up, `-- --planes real`."""
    sync_dev(session)
    if "real" in session.posargs:
        session.run("python", "-m", "e2e.planes", "build")
    # Ctrl-C reaches the demo too, which takes down what it started; that needs its time.
    session.run(
        "python", "-m", "e2e.demo", *session.posargs, interrupt_timeout=60, terminate_timeout=30
    )
