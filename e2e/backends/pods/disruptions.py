"""Disruptions of a pod on its node: memory exhaustion and expired tokens.

They are caused from the host through kernel and file system, because the container has no shell or
tools and the operators contain no test hooks.
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

from e2e.backends.pods.pods import Pod
from e2e.backends.pods.replicas import PodReplicas
from e2e.harness.access.waiting import until
from e2e.harness.node.machine import CGROUPS
from e2e.world.port import HUB, ROOT

# Allocates memory in the container's cgroup until the kernel kills the operator, then exits at
# once: a cgroup with a process in it cannot be removed.
_EATER: Final = """
import os, sys, time
with open(sys.argv[1] + "/cgroup.procs", "w") as group:
    group.write("0")
eaten = []
while os.path.exists("/proc/" + sys.argv[2]):
    eaten.append(bytearray(b"x" * (4 << 20)))
    time.sleep(0.005)
"""
WORST: Final = 1000  # of oom_score_adj: the kernel kills this process first
# Volumes of deploy/management that hold the token for a plane.
VOLUMES: Final = {HUB: "hub", ROOT: "milo"}


async def exhaust_memory(replicas: PodReplicas) -> str:
    """Fills the container's memory to its limit; returns the reason in its termination status."""
    (pod,) = replicas.pods.running()
    eater = _start_eater(replicas.pods.pids(pod))
    try:

        async def ended() -> str:
            same = [one for one in replicas.pods.find() if one.uid == pod.uid]
            return same[0].last_end if same and same[0].restarts > pod.restarts else ""

        return await until("the container to run out of memory", ended, check=_nothing)
    finally:
        eater.kill()
        await asyncio.to_thread(eater.wait)
        replicas.expect_restarts()


def _start_eater(victims: list[int]) -> subprocess.Popen[bytes]:
    # Raising needs no privilege. Without it the kernel would kill the larger allocating process.
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


async def expire_token(replicas: PodReplicas, plane: str) -> None:
    """Replaces the token for a plane by one that expired a minute ago and stops the kubelet, which
    would write a valid one.
    """
    kubelet = replicas.config.node.pid_of("kubelet")
    key = replicas.config.node.plane.runtime.settings.run.pki("service-accounts.key").read_bytes()
    tokens = [_token_of(replicas, kubelet, pod, VOLUMES[plane]) for pod in replicas.pods.running()]
    wanted = {token: expired(token.read_text("ascii"), key) for token in tokens}
    # Last: an earlier failure must not leave the kubelet stopped.
    os.kill(kubelet, signal.SIGSTOP)
    for token, content in wanted.items():
        token.write_text(content, "ascii")


async def resume_token_rotation(replicas: PodReplicas) -> None:
    """Resumes the kubelet, which writes valid tokens with its next sync of the pod."""
    os.kill(replicas.config.node.pid_of("kubelet"), signal.SIGCONT)


def _token_of(replicas: PodReplicas, kubelet: int, pod: Pod, volume: str) -> Path:
    volumes = replicas.config.node.root_of(kubelet) / "var/lib/kubelet/pods" / pod.uid / "volumes"
    return volumes / "kubernetes.io~projected" / volume / "..data" / "token"


def expired(token: str, key: bytes) -> str:
    """The same token with times in the past, signed with the same key."""
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
    """No process has to run while this waits."""
