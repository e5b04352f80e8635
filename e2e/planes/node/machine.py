"""What a machine must have for nodes, and the remedy where it has not. Never a hang, never a guess.

Asked before anything is made: a refusal leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from e2e.planes.errors import PlanesError

CNI: Final = Path("/usr/lib/cni")
PLUGINS: Final = ("bridge", "host-local", "loopback")
# Program to Debian's package.
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
# What images are built with (tools/images).
IMAGE_PACKAGES: Final = ("buildah", "mmdebstrap")
PACKAGES: Final = (*dict.fromkeys(PROGRAMS.values()), CNI_PACKAGE, *IMAGE_PACKAGES)
CGROUPS: Final = Path("/sys/fs/cgroup")
# Every interface a node needs, made and thrown away in namespaces of their own.
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


def check_machine() -> None:
    """Raises with everything that is missing."""
    if problem := next(find_problems(), None):
        raise problem


def find_problems() -> Iterator[PlanesError]:
    if sys.platform != "linux":
        yield _missing("nodes are made of Linux namespaces", "run it on Linux")
        return
    if os.geteuid() != 0:
        yield _missing("this user is not root", "run it as root")
        return
    if packages := missing_packages():
        yield _missing(
            f"not installed: {' '.join(packages)}",
            "`python -m e2e.planes.node prepare` installs them, as does apt-get",
        )
        return
    if not CGROUPS.is_dir() or not any(CGROUPS.iterdir()):
        yield _missing(f"no cgroups at {CGROUPS}", "mount them")
    for feature, script in PROBES.items():
        if refusal := _refusal_of(script):
            yield _missing(
                f"the kernel or a sandbox refuses {feature}: {refusal}",
                "use a machine or container that may make them",
            )


def missing_packages() -> list[str]:
    """Debian packages of the node's programs that are not there."""
    found = {package for program, package in PROGRAMS.items() if shutil.which(program) is None}
    if not all((CNI / plugin).exists() for plugin in PLUGINS):
        found.add(CNI_PACKAGE)
    found |= {package for package in IMAGE_PACKAGES if shutil.which(package) is None}
    return sorted(found)


def _missing(what: str, remedy: str) -> PlanesError:
    return PlanesError(f"preparing nodes: {what}", remedy=remedy)


def _refusal_of(script: str) -> str:
    """The last words of a script that failed in namespaces of its own; nothing where it worked."""
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return "no answer within 20 s"
    return "" if done.returncode == 0 else (done.stderr.strip() or "it failed").splitlines()[-1]
