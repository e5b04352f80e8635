"""The check that a Workload exists before a command answers about it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from compute_kubectl.commands.exits import NOT_JUDGED, CommandError
from compute_kubectl.snapshot.objects import SeenWorkload
from compute_kubectl.snapshot.planes import Snapshot

_MOST_SIMILAR: Final = 3


def require_workload(snapshot: Snapshot, name: str) -> SeenWorkload:
    """The Workload; `CommandError` names similar ones, or why nothing could be read."""
    listing = snapshot.project.workloads
    workload = next((one for one in listing if one.meta.name == name), None)
    if workload is not None:
        return workload
    if listing.proves_absence:
        similar = get_close_matches(name, [one.meta.name for one in listing], n=_MOST_SIMILAR)
        hint = f"; similar: {', '.join(similar)}" if similar else ""
        raise CommandError(f'workload "{name}" not found in namespace "{snapshot.namespace}"{hint}')
    detail = f" ({listing.detail})" if listing.detail else ""
    raise CommandError(
        f"Workloads of {snapshot.namespace!r} could not be read: {listing.access.value}{detail}",
        NOT_JUDGED,
    )
