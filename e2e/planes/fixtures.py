"""pytest's way to real planes: `--planes real` loads this, and every suite shares the same stacks.

A stack is brought up when the first test asks for it and stays until the last. Before and after
every test its processes are looked at, so that a test on a plane whose process died says so.
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
from e2e.planes.binaries import PLANES
from e2e.planes.build import find_programs
from e2e.planes.errors import PlanesError
from e2e.planes.identities import Identity
from e2e.planes.installation import Installation
from e2e.planes.inventory import await_equal, take_inventory
from e2e.planes.karmada_stack import RealKarmadaStack, address_of
from e2e.planes.kubeconfig import Context, render_kubeconfig
from e2e.planes.stack import Options, RealPlanes
from e2e.planes.store import Store
from e2e.planes.testing import GADGETS, WIDGETS, run_outside
from e2e.planes.topology import FULL, SINGLE, Role, Topology

CONTRACT_ADMIN: Final = Identity("contract-admin", ("system:masters",))
_up: Final[list[RealPlanes]] = []


@dataclass(frozen=True, slots=True)
class MiloAddress:
    """A Milo for tests: its kubeconfig, and two Ready projects they may fill."""

    kubeconfig: Path
    project: str
    other: str


def pytest_configure() -> None:
    """Puts the built kubectl before any other; a test that looks for one on the PATH finds it."""
    try:
        kubectl = find_programs(PLANES, Store.of_user())["kubectl"]
    except PlanesError as missing:
        raise pytest.UsageError(f"--planes real: {missing}") from missing
    os.environ["PATH"] = f"{kubectl.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


@contextmanager
def running(topology: Topology, options: Options) -> Generator[RealPlanes]:
    """A stack for as long as the block runs. It belongs to no event loop: each test has its own."""
    planes = RealPlanes(topology, options)
    run_outside(planes.start())
    _up.append(planes)
    try:
        yield planes
    finally:
        _up.remove(planes)
        run_outside(planes.stop())


def stacks_up() -> tuple[RealPlanes, ...]:
    """All that run for this session at the moment."""
    return tuple(_up)


@pytest.fixture(autouse=True)
def _no_process_died() -> Iterator[None]:
    """A test on a stack of which a process died fails with the name of that process."""
    for planes in stacks_up():
        planes.check()
    yield
    for planes in stacks_up():
        planes.check()


@pytest.fixture(scope="session")
def real_planes() -> Iterator[RealPlanes]:
    """The full topology.

    Kinds of the tests' own are on every plane from the start, so that no test waits the 30 s in
    which Karmada looks for new kinds.
    """
    with running(FULL, Options(crds=(WIDGETS, GADGETS))) as planes:
        yield planes


@pytest.fixture(scope="module")
def planes_left_as_found(real_planes: RealPlanes) -> Iterator[RealPlanes]:
    """The full topology, for a file whose tests install something or run an operator: when they
    are done, planes hold what they held before, so that the next file meets nobody's leavings.
    """
    before = run_outside(take_inventory(real_planes))
    yield real_planes
    run_outside(await_equal(real_planes, before))


@pytest.fixture(scope="module")
def installation(planes_left_as_found: RealPlanes) -> Iterator[Installation]:
    """What tests of a file apply to planes for all of them; it goes with the file."""
    made = Installation(planes_left_as_found)
    yield made
    run_outside(made.undo())


@pytest.fixture(scope="session")
def real_api_server() -> Iterator[ServerAddress]:
    """One API server with a controller-manager and nothing else, as its administrator."""
    with running(SINGLE, Options(identities=(CONTRACT_ADMIN,))) as planes:
        yield address_of(planes.plane("single"), CONTRACT_ADMIN.user)


@pytest.fixture(scope="module")
def real_karmada(real_planes: RealPlanes) -> Iterator[RealKarmadaStack]:
    """The hub and its two members; whatever tests did to them, the next file finds them joined."""
    yield RealKarmadaStack(real_planes)
    run_outside(real_planes.join_cells())


@pytest.fixture(scope="session")
def real_milo(real_planes: RealPlanes) -> MiloAddress:
    """The gateway, as its administrator."""
    milo = real_planes.milo
    token = milo.root.site.tokens.of(milo.root.name)
    context = Context("milo", milo.server(), milo.root.site.pki.authority, token)
    written = real_planes.run_folder.write_for_plane(
        milo.root.name, "milo.kubeconfig", render_kubeconfig([context])
    )
    first, second, *_ = (spec.name for spec in FULL.of_role(Role.PROJECT))
    return MiloAddress(written, first, second)
