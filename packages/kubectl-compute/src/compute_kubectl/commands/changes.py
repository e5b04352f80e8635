"""One change of a Workload: server dry run, a question, then the write.

The write has the resourceVersion that was read as its precondition: a Workload that was edited
meanwhile is refused by the server instead of being overwritten.
"""

from __future__ import annotations

import argparse
import http.client
import sys
from typing import Final

from compute_api_types.wire import JsonObject
from compute_kubectl.commands import flags
from compute_kubectl.commands.exits import NOT_JUDGED, NOT_READY, READY, CommandError
from compute_kubectl.commands.session import Session
from compute_kubectl.read import kinds
from compute_kubectl.read.requests import Answer, PlaneClient
from compute_kubectl.read.transport import PlaneError
from compute_kubectl.render.layout import clean
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.json_reads import text_at

MERGE_PATCH: Final = "application/merge-patch+json"


def add_change_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a Workload")
    parser.add_argument("-y", "--yes", action="store_true", help="write without a question")
    flags.add_project_flags(parser)


class WorkloadChange:
    """The Workload as it was read, and the client that changes it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.name = session.text("name")
        reader = session.reader()
        self.namespace = reader.namespace
        endpoint = reader.endpoints.project
        if endpoint is None:
            raise CommandError("the project is needed: leave --planes out")
        self._client: PlaneClient = reader.client("project", endpoint)
        reading = self._client.read_one(kinds.WORKLOADS, self.name, self.namespace)
        if reading.access is not Access.READ:
            detail = f" ({reading.detail})" if reading.detail else ""
            raise CommandError(
                f"workload {self.name!r} could not be read: {reading.access.value}{detail}",
                NOT_JUDGED,
            )
        if not reading.items:
            raise CommandError(f'workload "{self.name}" not found in namespace "{self.namespace}"')
        self.document: JsonObject = reading.items[0]

    def apply(self, patch: JsonObject, description: str) -> int:
        """Tries the patch, asks, and writes it."""
        version = text_at(self.document, "metadata", "resourceVersion")
        metadata = patch.get("metadata")
        base = metadata if isinstance(metadata, dict) else {}
        patch = {**patch, "metadata": {**base, "resourceVersion": version}}
        self._send(patch, dry_run=True)
        terminal = self._session.terminal
        terminal.show([description])
        if not self._session.flag("yes") and not self._confirms():
            terminal.show(["Nothing was changed."])
            return NOT_READY
        self._send(patch, dry_run=False)
        terminal.show(["Done. Watch it with: kubectl compute why " + clean(self.name)])
        return READY

    def _confirms(self) -> bool:
        if not sys.stdin.isatty():
            raise CommandError("there is no terminal to ask on: give --yes")
        self._session.terminal.show(["Write this? [y/N]"])
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def _send(self, patch: JsonObject, *, dry_run: bool) -> None:
        path = kinds.WORKLOADS.path(self.namespace, self.name)
        try:
            answer = self._client.send(
                "PATCH", path, patch, content_type=MERGE_PATCH, dry_run=dry_run
            )
        except PlaneError as failure:
            raise CommandError(f"the project: {failure.detail}", NOT_JUDGED) from None
        if answer.status != http.client.OK:
            raise CommandError(_refusal(answer), NOT_READY)


def _refusal(answer: Answer) -> str:
    message = text_at(answer.document, "message") or "no message"
    if answer.status == http.client.CONFLICT:
        return "the Workload was changed meanwhile: run the command again"
    return f"refused ({answer.status}): {message}"
