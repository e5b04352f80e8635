"""The first process inside a node's namespaces: mounts, network, containerd, kubelet, kube-proxy.

Run by `unshare`, so that it is number one of its process namespace: when it ends, the kernel ends
everything in it, and mounts, network and rules go with the namespaces. Like every first process it
reaps whoever lost his parent, and it starts its three programs again when they end.

It must import nothing of ours and nothing but the standard library: it runs isolated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PATIENCE: Final = 60.0
POLL: Final = 0.05
RESTART_AFTER: Final = 1.0
TMPFS: Final = ("/run", "/var/log", "/var/lib")


def main(path: str) -> None:
    told = json.loads(Path(path).read_text("utf-8"))
    mount(told["binds"], told["kernel_values"])
    join(told["uplink"], told["address"], told["gateway"])
    commands: dict[str, list[str]] = told["commands"]
    running = {start(name, commands, told["logs"]): name for name in ("containerd",)}
    wait_for("containerd", told["socket"])
    bring_images(told["images"], Path(told["imported"]))
    running |= {start(name, commands, told["logs"]): name for name in ("kubelet", "kube-proxy")}
    keep(running, commands, told["logs"])


def mount(binds: Mapping[str, str], kernel_values: Mapping[str, str]) -> None:
    run("mount", "--make-rprivate", "/")
    for folder in TMPFS:
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    for target, source in binds.items():
        Path(target).mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", source, target)
    # Volumes of pods are mounts below it, and a container must see those that come later.
    run("mount", "--make-rshared", "/var/lib/kubelet")
    for name, source in kernel_values.items():
        run("mount", "--bind", source, f"/proc/sys/{name}")


def join(uplink: str, address: str, gateway: str) -> None:
    """The host puts the cable in, by our process id; from here on we are on its network."""
    run("ip", "link", "set", "lo", "up")
    wait_for("the uplink", f"/proc/sys/net/ipv4/conf/{uplink}")
    run("ip", "address", "add", f"{address}/30", "dev", uplink)
    run("ip", "link", "set", uplink, "up")
    run("ip", "route", "add", "default", "via", gateway)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", "ascii")


def bring_images(archives: Sequence[str], imported: Path) -> None:
    """Once in the life of a node: a reboot finds them there."""
    if imported.exists():
        return
    for archive in archives:
        run("ctr", "-n", "k8s.io", "images", "import", archive)
    imported.touch()


def keep(running: dict[int, str], commands: Mapping[str, list[str]], logs: str) -> None:
    while True:
        ended, status = os.wait()
        name = running.pop(ended, None)
        if name is not None:
            say(f"{name} ended with {status}; it is started again")
            time.sleep(RESTART_AFTER)
            running[start(name, commands, logs)] = name


def start(name: str, commands: Mapping[str, list[str]], logs: str) -> int:
    with Path(logs, f"{name}.log").open("ab") as log:
        # Not waited for here: `keep` reaps it among all others.
        return os.posix_spawn(
            commands[name][0],
            commands[name],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
            ],
        )


def wait_for(what: str, path: str) -> None:
    end = time.monotonic() + PATIENCE
    while not Path(path).exists():
        if time.monotonic() > end:
            sys.exit(f"waiting for {what}: {path} did not appear within {PATIENCE:.0f} s")
        time.sleep(POLL)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"running {' '.join(command)}: {done.stderr.strip()}")


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1])
