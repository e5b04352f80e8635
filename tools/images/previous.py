"""The sources of a previous version, as `git archive` has them.

Images of it run beside those of this tree, where a scenario shows that two versions get on.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from tools.images.commands import ImagesError
from tools.workspace import ROOT


def check_out(revision: str, into: Path) -> None:
    """Fills `into`, from nothing, with the files of a revision; the clone is not changed."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    # The option ends before the revision, which comes from the command line.
    command = ["git", "archive", "--format=tar", "--end-of-options", revision]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
    if ended.returncode != 0:
        reason = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ImagesError(
            f"images: --previous {revision}: {' '.join(reason)}; "
            "name a commit or a tag that this clone has"
        )
    with tarfile.open(fileobj=BytesIO(ended.stdout)) as archive:
        archive.extractall(into, filter="data")
