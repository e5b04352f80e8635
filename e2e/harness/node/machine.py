"""Requirements of a machine for nodes, with a remedy for each that is not met.

They are checked before anything is created, so that a refusal leaves nothing behind. Each check has
a timeout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Self

from e2e.harness.errors import PlanesError
from e2e.harness.node.inotify import count_free

CNI: Final = Path("/usr/lib/cni")
PLUGINS: Final = ("bridge", "host-local", "loopback")
# Program to Debian package.
PROGRAMS: Final = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "iptables-restore": "iptables",
    "ip": "iproute2",
    "unshare": "util-linux",
    "mount": "mount",
}
CNI_PACKAGE: Final = "containernetworking-plugins"
# For building images (tools/images).
IMAGE_PACKAGES: Final = ("buildah", "mmdebstrap")
PACKAGES: Final = (*dict.fromkeys(PROGRAMS.values()), CNI_PACKAGE, *IMAGE_PACKAGES)
CGROUPS: Final = Path("/sys/fs/cgroup")
# A kernel answers at once; a sandbox may block instead.
PATIENCE: Final = timedelta(seconds=20)
# As scenarios need: home, two cells, the single cluster.
NODES: Final = 4
# For each node with its share of planes: with 70 for four nodes, kubelets ended.
WATCHERS_EACH: Final = 20
WATCHERS: Final = NODES * WATCHERS_EACH
# Every kernel interface that a node needs, tried in separate namespaces.
PROBES: Final = {
    "network, mount and process namespaces": "true",
    "veth interfaces": "ip link add probe0 type veth peer name probe1",
    "bridges": "ip link add probe2 type bridge",
    "iptables": "iptables -t nat -A POSTROUTING -m comment --comment x -j MASQUERADE",
    "overlay file systems": (
        "mount -t tmpfs tmpfs /mnt && mkdir /mnt/l /mnt/u /mnt/w /mnt/m && "
        "mount -t overlay overlay -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w /mnt/m"
    ),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts about a machine."""

    is_root: bool
    missing: tuple[str, ...]  # Debian packages
    # Runs a script in separate namespaces; returns its last line of error, empty on success.
    refusal_of: Callable[[str], str]
    watchers: int  # available inotify instances, counted up to the required number

    @classmethod
    def detect(cls) -> Self:
        """This machine."""
        missing, watchers = tuple(missing_packages()), count_free(WATCHERS)
        return cls(os.geteuid() == 0, missing, refusal_of, watchers)


def check_machine(machine: Machine | None = None, nodes: int = NODES) -> None:
    """Raises for the first requirement that is not met for so many nodes."""
    if problem := next(find_problems(machine or Machine.detect(), nodes), None):
        raise problem


def find_problems(machine: Machine, nodes: int = NODES) -> Iterator[PlanesError]:
    if sys.platform != "linux":
        yield _missing("nodes are made of Linux namespaces", "run it on Linux")
        return
    if not machine.is_root:
        yield _missing("this user is not root", "run it as root")
        return
    if machine.missing:
        yield _missing(
            f"not installed: {' '.join(machine.missing)}",
            "`python -m e2e.harness.node prepare` installs them, as does apt-get",
        )
        return
    if not CGROUPS.is_dir() or not any(CGROUPS.iterdir()):
        yield _missing(f"no cgroups at {CGROUPS}", "mount them")
    if machine.watchers < (wanted := min(WATCHERS, nodes * WATCHERS_EACH)):
        yield too_few_watchers(machine.watchers, wanted)
    for feature, script in PROBES.items():
        if refusal := machine.refusal_of(script):
            yield _missing(
                f"the kernel or a sandbox refuses {feature}: {refusal}",
                "use a machine or container that may make them",
            )


def too_few_watchers(free: int, wanted: int) -> PlanesError:
    return _missing(
        f"files can be watched by {free} more, and {wanted} are needed",
        "`sysctl fs.inotify.max_user_instances=512`, or end what else runs planes or clusters here",
    )


def missing_packages() -> list[str]:
    """Debian packages of missing programs."""
    packages = {package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    if not all((CNI / plugin).exists() for plugin in PLUGINS):
        packages.add(CNI_PACKAGE)
    packages |= {package for package in IMAGE_PACKAGES if shutil.which(package) is None}
    return sorted(packages)


def _missing(what: str, remedy: str) -> PlanesError:
    return PlanesError(f"preparing nodes: {what}", remedy=remedy)


def refusal_of(script: str, patience: timedelta = PATIENCE) -> str:
    """See `Machine`."""
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
    seconds = patience.total_seconds()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s"
    return "" if done.returncode == 0 else (done.stderr.strip() or "it failed").splitlines()[-1]
