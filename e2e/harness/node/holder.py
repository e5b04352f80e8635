"""The first process of a node: sets up mounts and network, runs containerd, kubelet, kube-proxy.

`unshare` starts it as process 1 of a PID namespace: when it ends, the kernel ends all processes in
it, and mounts, network and rules end with their namespaces. It reaps orphans and restarts its three
programs.

It runs isolated and imports the standard library only.
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
    settings = json.loads(Path(path).read_text("utf-8"))
    mount(settings["binds"], settings["kernel_values"])
    join(settings["uplink"], settings["address"], settings["gateway"])
    commands: dict[str, list[str]] = settings["commands"]
    running = {start(name, commands, settings["logs"]): name for name in ("containerd",)}
    wait_for("containerd", settings["socket"])
    bring_images(settings["images"], Path(settings["imported"]))
    running |= {start(name, commands, settings["logs"]): name for name in ("kubelet", "kube-proxy")}
    keep(running, commands, settings["logs"])


def mount(binds: Mapping[str, str], kernel_values: Mapping[str, str]) -> None:
    run("mount", "--make-rprivate", "/")
    for folder in TMPFS:
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    for target, source in binds.items():
        Path(target).mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", source, target)
    # Pod volumes are mounts below it, and containers must see later ones.
    run("mount", "--make-rshared", "/var/lib/kubelet")
    for name, source in kernel_values.items():
        run("mount", "--bind", source, f"/proc/sys/{name}")


def join(uplink: str, address: str, gateway: str) -> None:
    """Waits until the host has moved the veth interface into this namespace and configures it."""
    run("ip", "link", "set", "lo", "up")
    wait_for("the uplink", f"/proc/sys/net/ipv4/conf/{uplink}")
    run("ip", "address", "add", f"{address}/30", "dev", uplink)
    run("ip", "link", "set", uplink, "up")
    run("ip", "route", "add", "default", "via", gateway)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", "ascii")


def bring_images(archives: Sequence[str], imported: Path) -> None:
    """Imports the images once per node; a reboot keeps them."""
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
        # Reaped by `keep`.
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
