"""A mount with a kubeconfig and the files that it names, a clock, and certificates."""

from __future__ import annotations

import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import trustme

from compute_kubeconfig.access import Access
from compute_kubeconfig.credentials import FileCredentials
from compute_kubeconfig.kubeconfig import load_kubeconfig
from compute_kubeconfig.tls import ClientIdentity

CANARY: Final = "c4n4ry-t0k3n"
PLUGIN_API: Final = "client.authentication.k8s.io/v1"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that only `pass_time` moves."""

    def __init__(self) -> None:
        self._passed = timedelta()

    def now(self) -> datetime:
        return START + self._passed

    def monotonic(self) -> timedelta:
        return self._passed

    def pass_time(self, length: timedelta) -> None:
        self._passed += length


class Mount:
    """A directory as a pod mounts it. Tests change `cluster`, `user` or `content`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.authority = trustme.CA()
        self.write("ca.crt", self.authority.cert_pem.bytes())
        self.write("token", f"{CANARY}\n".encode())
        self.cluster: dict[str, object] = {
            "server": "https://hub.example:5443/base/",
            "certificate-authority": "ca.crt",
        }
        self.user: dict[str, object] = {"tokenFile": "token"}
        self.clusters: list[object] = [{"name": "hub", "cluster": self.cluster}]
        self.users: list[object] = []
        self.contexts: list[object] = [
            {"name": "hub", "context": {"cluster": "hub", "user": "me", "namespace": "n"}}
        ]
        self.more: dict[str, object] = {"apiVersion": "v1", "kind": "Config", "preferences": {}}

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def kubeconfig(self) -> Path:
        """Writes the kubeconfig, as JSON, which is YAML too."""
        content = {
            "current-context": "hub",
            "contexts": self.contexts,
            "clusters": self.clusters,
            "users": [{"name": "me", "user": self.user}, *self.users],
            **self.more,
        }
        return self.write("kubeconfig", json.dumps(content).encode())

    def load(self, context: str = "", *, allow_exec: bool = False) -> Access:
        return load_kubeconfig(self.kubeconfig(), context, allow_exec=allow_exec)

    def credentials(self, clock: ManualClock, *, allow_exec: bool = False) -> FileCredentials:
        return FileCredentials.from_kubeconfig(
            self.kubeconfig(), clock=clock, allow_exec=allow_exec
        )

    def identity(self) -> ClientIdentity:
        """A client certificate of the authority, and its key."""
        issued = self.authority.issue_cert("cell-1.example")
        return ClientIdentity(issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes())


def in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def a_plugin(script: str, *args: str) -> dict[str, object]:
    """The exec entry of a program in Python."""
    return {"apiVersion": PLUGIN_API, "command": sys.executable, "args": ["-c", script, *args]}


def prints(status: dict[str, object], counter: Path | None = None) -> str:
    """A script that prints a credential, and a line into `counter` each time it is run."""
    reply = json.dumps({"apiVersion": PLUGIN_API, "kind": "ExecCredential", "status": status})
    count = f"open({str(counter)!r}, 'a').write('x'); " if counter else ""
    return f"{count}print({reply!r})"
