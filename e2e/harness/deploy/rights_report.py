"""Reports the rights of `deploy/` that no scenario of a whole suite used.

Every simulated run writes a record of the rights it used. `python -m
e2e.harness.deploy.rights_report` prints the unused rights and the requests of users without rights
that were allowed (S3); `--forget` removes earlier records, so that a report covers one suite.
Rights are lines of text, so that runs on other backends can add theirs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

SPEC: Final = Path(__file__).parents[3] / ".spec"
RECORDS: Final = SPEC / "rights"
# Tenant × verb × resource from the sweep of S3; its first paragraph is a summary.
SWEEP: Final = SPEC / "sweep.txt"


def keep_record(scenario: str, used: Iterable[object]) -> None:
    """Records the rights of one scenario; a later run of it replaces the record."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(sorted(str(right) for right in used), indent=1)
    (RECORDS / f"{scenario}.json").write_text(text + "\n", "utf-8")


def read_records() -> set[str]:
    """All rights that any scenario used."""
    records: set[str] = set()
    for record in sorted(RECORDS.glob("*.json")):
        lines: list[str] = json.loads(record.read_text("utf-8"))
        records |= set(lines)
    return records


def find_unused(granted: Iterable[object]) -> list[str]:
    used = read_records()
    return sorted({str(right) for right in granted} - used)


def forget_records() -> None:
    for record in (*RECORDS.glob("*.json"), SWEEP):
        record.unlink(missing_ok=True)


def read_sweep() -> list[str]:
    """The summary of the sweep, a line per user and plane; a suite without it reports that."""
    if not SWEEP.exists():
        return ["tenant × verb × resource: not run"]
    summary = SWEEP.read_text("utf-8").partition("\n\n")[0]
    return [
        f"tenant × verb × resource, in full in {SWEEP.relative_to(SPEC.parent)}:",
        *(f"  {line}" for line in summary.splitlines()),
    ]


def main(arguments: Sequence[str]) -> int:
    """Prints every unused right; returns 1 if there is one, 2 for unknown arguments."""
    if [*arguments] == ["--forget"]:
        forget_records()
        return 0
    if arguments:
        sys.stderr.write("usage: python -m e2e.harness.deploy.rights_report [--forget]\n")
        return 2
    # Only this command needs the simulation beside the records.
    from e2e.harness.deploy.rights import granted_rights

    granted = granted_rights()
    unused = find_unused(granted)
    sys.stdout.write(f"{len(granted)} rights granted, {len(unused)} never used\n")
    sys.stdout.writelines(f"  {right}\n" for right in unused)
    sys.stdout.writelines(f"{line}\n" for line in read_sweep())
    return 1 if unused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
