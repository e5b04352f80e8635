"""The base image, out of Debian's packages: an interpreter, certificates, time zones, no shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tools.images.buildah import Buildah
from tools.images.commands import run

NAME: Final = "localhost/compute-base:debian12"
SUITE: Final = "bookworm"
PACKAGES: Final = (
    "python3-minimal",
    "libpython3.11-stdlib",
    "libc-bin",
    "ca-certificates",
    "tzdata",
    "netbase",
    "base-files",
)
# Packages are unpacked and never configured, so what their scripts would do is done here. Bin
# folders keep the interpreter alone; the addresses of package sources are removed.
HOOK: Final = """\
#!/bin/sh
set -eu
root="$1"
mkdir -p "$root/etc/ssl/certs" "$root/tmp"
find "$root/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat \\
  > "$root/etc/ssl/certs/ca-certificates.crt"
printf 'root:x:0:0:root:/root:/sbin/nologin\\n' > "$root/etc/passwd"
printf 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin\\n' >> "$root/etc/passwd"
printf 'root:x:0:\\nnonroot:x:65532:\\n' > "$root/etc/group"
ldconfig -r "$root"
ln -sf python3.11 "$root/usr/bin/python3"
for folder in bin sbin usr/bin usr/sbin; do
  find "$root/$folder" -mindepth 1 ! -name 'python3*' -delete
done
for gone in etc/apt/sources.list etc/cron.daily usr/share/bug var/lib/apt var/lib/dpkg var/cache \\
  var/log usr/share/doc usr/share/man usr/share/locale usr/share/lintian; do
  rm -rf "${root:?}/$gone"
done
find "$root" -xdev -perm /6000 -type f -exec chmod u-s,g-s {} +
"""


def make_base(buildah: Buildah, folder: Path) -> str:
    """Builds the base and gives its id."""
    folder.mkdir(parents=True, exist_ok=True)
    hook = folder / "hook.sh"
    hook.write_text(HOOK, "utf-8")
    hook.chmod(0o755)
    archive = folder / "base.tar"
    run(
        [
            *("mmdebstrap", "--mode=root", "--variant=extract", "--skip=cleanup/apt"),
            *(f"--include={','.join(PACKAGES)}", f"--extract-hook={hook}"),
            *(SUITE, archive),
        ],
        {"SOURCE_DATE_EPOCH": "1", "TMPDIR": os.environ.get("TMPDIR", "/tmp")},  # noqa: S108
    )
    return buildah.import_root(archive, NAME)
