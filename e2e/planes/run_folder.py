"""The one folder a stack writes to: certificates, credentials, data, one log per process.

Nothing is written outside of it, so that removing it removes everything. After a failure it stays,
and the error names it.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.planes.certificates import KeyPair, write_private

# Metadata of every request is what the oracles read (faults.md O6); health probes would drown it.
AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*", "/openapi*", "/version"]
- level: Metadata
"""
_FOLDERS: Final = ("pki", "webhook", "planes", "logs", "audit", "tmp")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths inside the run folder; asking for one makes nothing."""

    path: Path

    @classmethod
    def create(cls, path: Path | None = None) -> RunFolder:
        """Makes the folder and its parts; without a path, a new one among temporary files."""
        chosen = path or Path(tempfile.mkdtemp(prefix="compute-planes-"))
        for name in _FOLDERS:
            (chosen / name).mkdir(parents=True, exist_ok=True)
        chosen.chmod(0o700)  # it holds keys
        run = cls(chosen)
        run.audit_policy.write_text(AUDIT_POLICY, "utf-8")
        return run

    def remove(self, *, keep_logs: bool) -> None:
        """Removes the folder; after a failure its logs stay, keys and data never do."""
        kept = {"logs", "audit"} if keep_logs else set[str]()
        for part in self.path.iterdir():
            if part.name in kept:
                continue
            if part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink()
        if not kept:
            self.path.rmdir()

    @property
    def audit_policy(self) -> Path:
        return self.path / "audit-policy.yaml"

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def etcd_data(self) -> Path:
        return self.path / "etcd"

    @property
    def webhook_certificates(self) -> Path:
        return self.path / "webhook"

    def pki(self, name: str) -> Path:
        return self.path / "pki" / name

    def log_of(self, process: str) -> Path:
        return self.path / "logs" / f"{process}.log"

    def audit_of(self, plane: str) -> Path:
        return self.path / "audit" / f"{plane}.log"

    def of_plane(self, plane: str, name: str) -> Path:
        return self.path / "planes" / plane / name

    def write_for_plane(self, plane: str, name: str, content: str) -> Path:
        path = self.of_plane(plane, name)
        path.parent.mkdir(exist_ok=True)
        return write_private(path, content.encode())

    def write_pair(self, name: str, pair: KeyPair) -> None:
        pair.write(self.path / "pki", name)

    def environment(self, inherited: str) -> dict[str, str]:
        """What a process of the stack sees: no home and no settings of the user, no proxy."""
        return {
            "PATH": inherited,
            "HOME": str(self.path / "tmp"),
            "TMPDIR": str(self.path / "tmp"),
        }
