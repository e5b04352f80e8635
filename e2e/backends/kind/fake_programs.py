"""Fakes of kind, docker, karmadactl and ip, for tests without docker.

`kind create cluster` starts etcd and a kube-apiserver from the file that kind would read, with
kubeadm's flags and its patches, and with every path resolved through the pod's volumes and the
node's mounts. An unmounted path, an unknown flag or a wrong CA keeps the server from starting.
`docker kill` and `docker start` stop and start it. docker, kubeadm and kubelet are not simulated.

    python -m e2e.backends.kind.fake_programs FOLDER PROGRAM ARGUMENTS…
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import yaml

from compute_sim_planes.json_types import JsonObject
from e2e.harness.access.certificates import Authority, KeyPair
from e2e.harness.access.kubeconfig import Context, render_kubeconfig
from e2e.harness.planes.pki import AUTHORITY
from e2e.harness.processes.ports import LOOPBACK, Ports
from e2e.harness.programs.binaries import PLANES
from e2e.harness.programs.build import find_programs
from e2e.harness.programs.store import Store
from e2e.world.objects import number_at, object_at, objects_at, text_at, texts_at

PROGRAMS: Final = ("kind", "docker", "karmadactl", "ip")
PKI: Final = "/etc/kubernetes/pki"
TREE: Final = Path(__file__).parents[3]


def write_programs(folder: Path) -> Path:
    """Writes the executables into a folder for PATH; its file `record` lists their calls."""
    made = folder / "bin"
    made.mkdir(parents=True)
    for name in PROGRAMS:
        program = made / name
        words = f'"{sys.executable}" -m e2e.backends.kind.fake_programs "{folder}" {name} "$@"'
        program.write_text(f'#!/bin/sh\ncd "{TREE}" && exec {words}\n', "utf-8")
        program.chmod(0o755)
    return made


def read_record(folder: Path) -> list[str]:
    record = folder / "record"
    return record.read_text("utf-8").splitlines() if record.exists() else []


# --- a cluster ------------------------------------------------------------------------------------


class FakeCluster:
    """One cluster: two processes that outlive the command that started them."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder / "clusters" / name

    @property
    def _pids(self) -> Path:
        return self._folder / "pids"

    def create(self, config: Path, kubeconfig: Path) -> None:
        self._folder.mkdir(parents=True)
        commands = self._compose(yaml.safe_load(config.read_text("utf-8")), kubeconfig)
        (self._folder / "commands.json").write_text(json.dumps(commands), "utf-8")
        self.start()

    def start(self) -> None:
        commands: list[list[str]] = json.loads((self._folder / "commands.json").read_text("utf-8"))
        pids: list[int] = []
        for command in commands:
            with (self._folder / "log").open("ab") as log:
                begun = subprocess.Popen(
                    command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, process_group=0
                )
            pids.append(begun.pid)
        self._pids.write_text(" ".join(map(str, pids)), "utf-8")

    def kill(self) -> None:
        for pid in self._pids.read_text("utf-8").split() if self._pids.exists() else ():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._pids.unlink(missing_ok=True)

    def pid(self) -> str:
        """The process id of the API server, which stands for the node's first process."""
        return self._pids.read_text("utf-8").split()[-1]

    def delete(self) -> None:
        self.kill()
        subprocess.run(["rm", "-rf", str(self._folder)], check=True)

    def _compose(self, config: JsonObject, kubeconfig: Path) -> list[list[str]]:
        (node,), (patch,) = objects_at(config, "nodes"), texts_at(config, "kubeadmConfigPatches")
        kubeadm: JsonObject = yaml.safe_load(patch)
        paths = Paths(node, kubeadm)
        networking = object_at(config, "networking")
        address = text_at(networking, "apiServerAddress")
        port = str(number_at(networking, "apiServerPort"))
        self._certify(paths, address, f"https://{address}:{port}", kubeconfig)
        programs = find_programs(PLANES, Store.of_user())
        with Ports(LOOPBACK) as ports:
            client, peer = ports.reserve(), ports.reserve()
        etcd = f"http://{LOOPBACK}:{client}"
        usual = {
            "etcd-servers": etcd,
            "bind-address": address,
            "advertise-address": address,
            "secure-port": port,
            "service-cluster-ip-range": text_at(networking, "serviceSubnet"),
            "client-ca-file": f"{PKI}/ca.crt",
            "tls-cert-file": str(self._folder / "server.crt"),
            "tls-private-key-file": str(self._folder / "server.key"),
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": f"{PKI}/sa.pub",
            "service-account-signing-key-file": f"{PKI}/sa.key",
            "requestheader-client-ca-file": f"{PKI}/front-proxy-ca.crt",
            "requestheader-allowed-names": "front-proxy-client",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            # kubeadm's pod has a service account; this process has none
            "disable-admission-plugins": "ServiceAccount",
        }
        arguments = {**usual, **_extra_arguments(kubeadm)}
        own = str(self._folder)
        flags = [
            f"--{name}={value if value.startswith(own) else paths.follow(value)}"
            for name, value in arguments.items()
        ]
        data = str(self._folder / "etcd")
        return [
            [
                str(programs["etcd"]),
                f"--data-dir={data}",
                f"--listen-client-urls={etcd}",
                f"--advertise-client-urls={etcd}",
                f"--listen-peer-urls=http://{LOOPBACK}:{peer}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
            [str(programs["kube-apiserver"]), *flags],
        ]

    def _certify(self, paths: Paths, address: str, server: str, kubeconfig: Path) -> None:
        """Issues certificates as kubeadm does with an existing CA."""
        certificate, key = (
            Path(paths.follow(f"{PKI}/ca.{part}")).read_bytes() for part in ("crt", "key")
        )
        authority = Authority(AUTHORITY, datetime.now(UTC), KeyPair(certificate, key))
        authority.issue_server([address, LOOPBACK], ["localhost"]).write(self._folder, "server")
        admin = authority.issue_client("kubernetes-admin", ["system:masters"])
        context = Context("kind", server, certificate, admin)
        kubeconfig.write_text(render_kubeconfig([context]), "utf-8")


class Paths:
    """Resolves a path of the API server's pod to a path on this machine."""

    def __init__(self, node: JsonObject, kubeadm: JsonObject) -> None:
        # kubeadm mounts its own folder into the pod.
        self._in_node = {PKI: PKI} | {
            text_at(one, "mountPath"): text_at(one, "hostPath")
            for one in objects_at(kubeadm, "apiServer", "extraVolumes")
        }
        self._here = {
            text_at(one, "containerPath"): text_at(one, "hostPath")
            for one in objects_at(node, "extraMounts")
        }

    def follow(self, value: str) -> str:
        """Returns a value that is not a path unchanged."""
        if not value.startswith("/"):
            return value
        return _translated(_translated(value, self._in_node), self._here)


def _translated(path: str, known: Mapping[str, str]) -> str:
    for inner, outer in known.items():
        if path == inner or path.startswith(f"{inner}/"):
            return outer + path.removeprefix(inner)
    raise LookupError(f"{path} is not mounted")


def _extra_arguments(kubeadm: JsonObject) -> dict[str, str]:
    extra = object_at(kubeadm, "apiServer", "extraArgs")
    return {name: str(value) for name, value in extra.items()}


# --- the programs ---------------------------------------------------------------------------------


def _after(words: Sequence[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def run_fake(folder: Path, words: Sequence[str]) -> str:
    """Runs a fake and returns its output."""
    node = words[-1].removesuffix("-control-plane")
    match words[:3]:
        case ["kind", "create", "cluster"]:
            config, kubeconfig = _after(words, "--config"), _after(words, "--kubeconfig")
            FakeCluster(folder, _after(words, "--name")).create(Path(config), Path(kubeconfig))
        case ["kind", "delete", "cluster"]:
            FakeCluster(folder, _after(words, "--name")).delete()
        case ["kind", "get", "clusters"]:
            return "\n".join(one.name for one in sorted((folder / "clusters").glob("*")))
        case ["docker", "inspect", "--format"]:
            return FakeCluster(folder, node).pid() if "State.Pid" in words[3] else LOOPBACK
        case ["docker", "kill", _]:
            FakeCluster(folder, node).kill()
        case ["docker", "start", _]:
            FakeCluster(folder, node).start()
        case _:
            pass  # recording the call is enough
    return ""


def main(arguments: Sequence[str]) -> int:
    folder, words = Path(arguments[0]), arguments[1:]
    with (folder / "record").open("a", encoding="utf-8") as record:
        record.write(" ".join(words) + "\n")
    try:
        sys.stdout.write(run_fake(folder, words) + "\n")
    except LookupError as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
