"""What can befall a pod on its node: memory runs out, tokens expire.

Done from the host, through the kernel: the container itself has no shell and no tools, and nothing
of ours is built for being hurt.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from e2e.backends.in_cluster.crew import PodCrew
from e2e.backends.in_cluster.pods import Pod
from e2e.backends.port import HUB, ROOT
from e2e.planes.node.machine import CGROUPS
from e2e.planes.waiting import until

# Takes memory in the container's own group until the kernel ends the one who lives there, and
# leaves at once: a group that somebody is in cannot be removed.
_EATER: Final = """
import os, sys, time
with open(sys.argv[1] + "/cgroup.procs", "w") as group:
    group.write("0")
eaten = []
while os.path.exists("/proc/" + sys.argv[2]):
    eaten.append(bytearray(b"x" * (4 << 20)))
    time.sleep(0.005)
"""
WORST: Final = 1000  # of oom_score_adj: whom the kernel ends first
# Where deploy/management mounts the token for a plane.
VOLUMES: Final = {HUB: "hub", ROOT: "milo"}


async def exhaust_memory(crew: PodCrew) -> str:
    """Fills the container's memory to its limit; returns how kubelet calls the end of it."""
    (pod,) = crew.pods.running()
    eater = _start_eater(crew.pods.pids(pod))
    try:

        async def ended() -> str:
            found = [one for one in crew.pods.find() if one.uid == pod.uid]
            return found[0].last_end if found and found[0].restarts > pod.restarts else ""

        return await until("the container to run out of memory", ended, check=_nothing)
    finally:
        eater.kill()
        await asyncio.to_thread(eater.wait)
        crew.forgive()


def _start_eater(victims: list[int]) -> subprocess.Popen[bytes]:
    # Raised, never lowered: that needs no right. Else the eater, who is larger, would go first.
    for pid in victims:
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(WORST), "ascii")
    group = str(_memory_group(victims[0]))
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", _EATER, group, str(victims[0])])


def _memory_group(pid: int) -> Path:
    for line in Path(f"/proc/{pid}/cgroup").read_text("ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            return CGROUPS / "memory" / path.lstrip("/")
        if not controllers and (CGROUPS / "cgroup.controllers").exists():
            return CGROUPS / path.lstrip("/")
    raise LookupError(f"process {pid} is in no memory cgroup")


# --- tokens ---------------------------------------------------------------------------------------


async def expire_token(crew: PodCrew, plane: str) -> None:
    """The token for a plane is one that expired a minute ago; kubelet does not look meanwhile."""
    kubelet = crew.fitting.node.pid_of("kubelet")
    key = crew.fitting.node.plane.site.ground.run.pki("service-accounts.key").read_bytes()
    tokens = [_token_of(crew, kubelet, pod, VOLUMES[plane]) for pod in crew.pods.running()]
    wanted = {token: expired(token.read_text("ascii"), key) for token in tokens}
    # Only now: whatever fails before leaves kubelet awake.
    os.kill(kubelet, signal.SIGSTOP)
    for token, content in wanted.items():
        token.write_text(content, "ascii")


async def let_kubelet_see(crew: PodCrew) -> None:
    """kubelet goes on, and with its next look at the pod writes tokens that hold."""
    os.kill(crew.fitting.node.pid_of("kubelet"), signal.SIGCONT)


def _token_of(crew: PodCrew, kubelet: int, pod: Pod, volume: str) -> Path:
    volumes = crew.fitting.node.root_of(kubelet) / "var/lib/kubelet/pods" / pod.uid / "volumes"
    return volumes / "kubernetes.io~projected" / volume / "..data" / "token"


def expired(token: str, key: bytes) -> str:
    """The same token, rightly signed, of an hour that is over."""
    header, payload, _ = token.split(".")
    claims: dict[str, object] = json.loads(_decoded(payload))
    now = int(time.time())
    claims |= {"iat": now - 3660, "nbf": now - 3660, "exp": now - 60}
    signed = f"{header}.{_encoded(json.dumps(claims).encode())}"
    private = serialization.load_pem_private_key(key, password=None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise TypeError("service account tokens are signed with an elliptic key here")
    first, second = decode_dss_signature(private.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_encoded(first.to_bytes(32, 'big') + second.to_bytes(32, 'big'))}"


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _nothing() -> None:
    """Nobody needs to live meanwhile."""
