"""pytest plugin for real planes, loaded with `--planes real`; all suites share the same stacks.

A stack is started when the first test needs it and runs until the end of the session. Its processes
are checked before and after every test, so that a test on a dead plane fails with the process name.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from compute_sim_planes.api_server.testing import ServerAddress
from e2e.harness.access.kubeconfig import Context, render_kubeconfig
from e2e.harness.errors import PlanesError
from e2e.harness.planes.identities import CELL_AT_HOME, Identity
from e2e.harness.planes.topology import FULL, SINGLE, Role, Topology
from e2e.harness.programs.binaries import PLANES
from e2e.harness.programs.build import find_programs
from e2e.harness.programs.store import Store
from e2e.harness.stack.stack import Options, RealPlanes
from e2e.harness.testing.helpers import GADGETS, WIDGETS, run_outside
from e2e.harness.testing.installation import Installation
from e2e.harness.testing.inventory import await_equal, take_inventory
from e2e.harness.testing.karmada_stack import RealKarmadaStack, address_of

CONTRACT_ADMIN: Final = Identity("contract-admin", ("system:masters",))
_up: Final[list[RealPlanes]] = []


@dataclass(frozen=True, slots=True)
class MiloAddress:
    """A Milo for tests: its kubeconfig, and two Ready projects for their objects."""

    kubeconfig: Path
    project: str
    other: str


@dataclass(frozen=True, slots=True)
class MiloServers:
    """A Milo for tests of its admission: its administrator, and a user that a test gives rights."""

    admin: ServerAddress
    user: ServerAddress
    user_name: str
    project: str


def pytest_configure() -> None:
    """Puts the built kubectl first on the PATH for tests that search it there."""
    try:
        kubectl = find_programs(PLANES, Store.of_user())["kubectl"]
    except PlanesError as missing:
        raise pytest.UsageError(f"--planes real: {missing}") from missing
    os.environ["PATH"] = f"{kubectl.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


@contextmanager
def running(topology: Topology, options: Options) -> Generator[RealPlanes]:
    """A stack that runs as long as the block, independent of the event loops of tests."""
    planes = RealPlanes(topology, options)
    run_outside(planes.start())
    _up.append(planes)
    try:
        yield planes
    finally:
        _up.remove(planes)
        run_outside(planes.stop())


def stacks_up() -> tuple[RealPlanes, ...]:
    """All stacks that run now."""
    return tuple(_up)


@pytest.fixture(autouse=True)
def _no_process_died() -> Iterator[None]:
    """Fails a test with the name of a process of its stack that ended."""
    for planes in stacks_up():
        planes.check()
    yield
    for planes in stacks_up():
        planes.check()


@pytest.fixture(scope="session")
def real_planes() -> Iterator[RealPlanes]:
    """The full topology.

    The tests' own CRDs are on every plane from the start, so that no test waits the 30 s in which
    Karmada discovers new kinds.
    """
    with running(FULL, Options(crds=(WIDGETS, GADGETS))) as planes:
        yield planes


@pytest.fixture(scope="module")
def planes_left_as_found(real_planes: RealPlanes) -> Iterator[RealPlanes]:
    """The full topology, for a file with tests that install something or run an operator: at its
    end the planes must hold the same objects as before, so that the next file meets no leftovers.
    """
    before = run_outside(take_inventory(real_planes))
    yield real_planes
    run_outside(await_equal(real_planes, before))


@pytest.fixture(scope="module")
def installation(planes_left_as_found: RealPlanes) -> Iterator[Installation]:
    """Objects that the tests of a file apply; they are deleted with the file."""
    made = Installation(planes_left_as_found)
    yield made
    run_outside(made.undo())


@pytest.fixture(scope="session")
def real_api_server() -> Iterator[ServerAddress]:
    """One API server with a controller-manager, as its administrator."""
    with running(SINGLE, Options(identities=(CONTRACT_ADMIN,))) as planes:
        yield address_of(planes.plane("single"), CONTRACT_ADMIN.user)


@pytest.fixture(scope="module")
def real_karmada(real_planes: RealPlanes) -> Iterator[RealKarmadaStack]:
    """The hub and its two members, which are joined again for the next file."""
    yield RealKarmadaStack(real_planes)
    run_outside(real_planes.join_cells())


@pytest.fixture(scope="session")
def real_milo(real_planes: RealPlanes) -> MiloAddress:
    """The gateway, as its administrator."""
    milo = real_planes.milo
    token = milo.root.runtime.tokens.of(milo.root.name)
    context = Context("milo", milo.server(), milo.root.runtime.pki.authority, token)
    written = real_planes.run_folder.write_for_plane(
        milo.root.name, "milo.kubeconfig", render_kubeconfig([context])
    )
    first, second, *_ = (spec.name for spec in FULL.of_role(Role.PROJECT))
    return MiloAddress(written, first, second)


@pytest.fixture(scope="session")
def real_milo_servers(real_planes: RealPlanes) -> MiloServers:
    """The gateway, as its administrator and as a user who is not exempt from admission."""
    milo = real_planes.milo
    authority, tokens = milo.root.runtime.pki.authority, milo.root.runtime.tokens
    user = CELL_AT_HOME.user
    project = next(spec.name for spec in FULL.of_role(Role.PROJECT))
    return MiloServers(
        ServerAddress(milo.server(), tokens.of(milo.root.name).token, authority),
        ServerAddress(milo.server(), tokens.of(milo.root.name, user).token, authority),
        user,
        project,
    )
