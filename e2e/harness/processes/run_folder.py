"""The only folder that a stack writes to: certificates, credentials, data, a log per process.

Removing it removes everything. After a failure it stays, and the error names it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.harness.access.certificates import KeyPair, write_private
from e2e.harness.errors import PlanesError

# Oracles read the metadata of every request (faults.md O6); health probes are left out.
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
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the kernel's name for files in memory
_FREE_MEMORY: Final = Path("/proc/meminfo")
_PLENTY: Final = 12 << 30  # bytes; nodes write one or two GB, and programs need their share


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths inside the run folder; they are not created by access."""

    path: Path

    @classmethod
    def create(cls, path: Path | None = None, *, is_for_nodes: bool = False) -> RunFolder:
        """Creates the folder and its subfolders; without a path, among temporary files.

        Nodes unpack and remove images, and a slow disk then delays etcd and audit logs of every
        plane: ten seconds cost an operator its Lease.
        """
        if path and path.is_dir() and any(path.iterdir()):
            # The folder is removed at the end, so it must not contain files of others.
            raise PlanesError(
                f"making the run folder {str(path)!r}: it is not empty",
                remedy="name one that is empty or not there yet",
            )
        try:
            place = find_memory() if is_for_nodes else None
            run = cls(path or Path(tempfile.mkdtemp(prefix="compute-planes-", dir=place)))
            for name in _FOLDERS:
                (run.path / name).mkdir(parents=True, exist_ok=True)
            run.path.chmod(0o700)  # it contains keys
            run.audit_policy.write_text(AUDIT_POLICY, "utf-8")
        except OSError as cause:
            raise PlanesError(
                f"making the run folder {str(cause.filename)!r}: {cause.strerror}",
                remedy="free disk space, or choose another place with --folder or TMPDIR",
            ) from cause
        return run

    def remove(self, *, keep_logs: bool) -> None:
        """Removes the folder; after a failure the logs are kept, keys and data never."""
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
        """The environment of the stack's processes: without the user's home, settings and proxy."""
        return {
            "PATH": inherited,
            "HOME": str(self.path / "tmp"),
            "TMPDIR": str(self.path / "tmp"),
        }


def find_memory(memory: Path = _MEMORY, meminfo: Path = _FREE_MEMORY) -> Path | None:
    """A folder in memory, if there is plenty; None if TMPDIR is set."""
    if "TMPDIR" in os.environ or not memory.is_dir() or not meminfo.is_file():
        return None
    room = min(shutil.disk_usage(memory).free, _read_available(meminfo.read_text("ascii")))
    return memory if room >= _PLENTY else None


def _read_available(meminfo: str) -> int:
    """Available memory in bytes, from /proc/meminfo."""
    lines = (line.split() for line in meminfo.splitlines())
    return next((int(words[1]) << 10 for words in lines if words[0] == "MemAvailable:"), 0)
