"""Makes the krew plugin of `kubectl compute`: an archive with a starter, and its manifest.

krew copies files and runs nothing, so that the plugin is a starter: it runs the published wheel of
exactly this version by `uv`, which keeps it in its cache. The archive has the same bytes in every
build; the manifest names its address in the release and its digest.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path
from typing import Final

import yaml

from tools.workspace import ROOT, Package

PACKAGE: Final = Package("kubectl-compute")
MANIFEST: Final = "compute.yaml"
PROGRAM: Final = "kubectl-compute"
RELEASES: Final = "https://github.com/datum-cloud/compute-federation/releases/download"
HOMEPAGE: Final = "https://github.com/datum-cloud/compute-federation"
STARTER: Final = """\
#!/bin/sh
# kubectl compute {version}: runs the published wheel of this version in an environment of its own.
if ! command -v uv >/dev/null 2>&1; then
  echo "kubectl compute needs uv (https://docs.astral.sh/uv); or: pip install {wheel}" >&2
  exit 3
fi
exec uv tool run --quiet --from "{wheel}" {program} "$@"
"""
DESCRIPTION: Final = """\
Follows a Workload of compute.datumapis.com through project, hub and cells, and names the one stage
where it stands, since when, whose turn it is and what to do. Read-only but for `restart` and
`scale`.
"""


def archive_name(version: str) -> str:
    return f"{PROGRAM}-{version}.tar.gz"


def make_archive(version: str) -> bytes:
    """The starter and the licence; times and owners are fixed, so that builds do not differ."""
    wheel = f"{PACKAGE.distribution}=={version}"
    starter = STARTER.format(version=version, wheel=wheel, program=PROGRAM).encode()
    licence = (PACKAGE.path / "LICENSE").read_bytes()
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content, mode in ((PROGRAM, starter, 0o755), ("LICENSE", licence, 0o644)):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


def make_manifest(version: str, archive: bytes) -> str:
    """The manifest as krew-index takes it."""
    tag = f"{PACKAGE.folder}%2Fv{version}"
    platform = {
        # No Windows: the starter is a shell script; `uv tool install` serves it there.
        "selector": {"matchExpressions": [_one_of("os", "linux", "darwin")]},
        "uri": f"{RELEASES}/{tag}/{archive_name(version)}",
        "sha256": hashlib.sha256(archive).hexdigest(),
        "bin": PROGRAM,
        "files": [{"from": PROGRAM, "to": "."}, {"from": "LICENSE", "to": "."}],
    }
    document = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "compute"},
        "spec": {
            "version": f"v{version}",
            "homepage": HOMEPAGE,
            "shortDescription": "Tell why a federated Workload does not run",
            "description": DESCRIPTION,
            "caveats": "Needs uv (https://docs.astral.sh/uv) on the PATH.\n",
            "platforms": [platform],
        },
    }
    return yaml.safe_dump(document, sort_keys=False, width=100)


def _one_of(key: str, *values: str) -> dict[str, object]:
    return {"key": key, "operator": "In", "values": [*values]}


def write_plugin(into: Path, version: str) -> list[Path]:
    """Both files in a folder."""
    archive = make_archive(version)
    files = [into / archive_name(version), into / MANIFEST]
    files[0].write_bytes(archive)
    files[1].write_text(make_manifest(version, archive), "utf-8")
    return files


def main() -> None:
    into = ROOT / "dist"
    into.mkdir(exist_ok=True)
    for path in write_plugin(into, PACKAGE.version):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
