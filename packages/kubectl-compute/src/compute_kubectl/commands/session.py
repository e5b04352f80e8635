"""What a command works with: options, the terminal, and snapshots of planes or of a directory."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from compute_api_types.wire import JsonObject
from compute_kubectl.commands.exits import NOT_JUDGED, CommandError
from compute_kubectl.commands.terminal import Terminal
from compute_kubectl.read.contexts import ContextError, PlaneChoice, find_endpoints
from compute_kubectl.read.questions import Question, Scope
from compute_kubectl.read.reader import SnapshotReader
from compute_kubectl.read.requests import Clock, Sent, utc_now
from compute_kubectl.read.saved import SavedError, load, save
from compute_kubectl.read.transport import Transport
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.decode import decode
from compute_kubectl.snapshot.planes import Snapshot


@dataclass(frozen=True, slots=True)
class Ports:
    """What a run on simulated planes replaces: connections and clock; `sent` sees each request."""

    sent: Sent | None = None
    transport: Transport | None = None
    clock: Clock | None = None


class Session:
    """One run of one command."""

    def __init__(
        self,
        options: argparse.Namespace,
        terminal: Terminal,
        environ: Mapping[str, str],
        *,
        ports: Ports | None = None,
    ) -> None:
        self.options = options
        self.terminal = terminal
        self._ports = ports or Ports()
        self._clock = self._ports.clock or utc_now
        self.now = self._clock()
        self._environ = environ
        self._reader: SnapshotReader | None = None

    def text(self, name: str) -> str:
        """A text option; empty where the command has no such flag."""
        value = getattr(self.options, name, None)
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool:
        return getattr(self.options, name, False) is True

    @property
    def is_offline(self) -> bool:
        return bool(self.text("offline"))

    @property
    def wants_json(self) -> bool:
        return self.text("output") == "json"

    def reader(self) -> SnapshotReader:
        """The reader of the chosen planes; `CommandError` where the kubeconfig is refused."""
        if self._reader is None:
            cells: list[tuple[str, str]] = getattr(self.options, "cell_context", [])
            choice = PlaneChoice(
                kubeconfig=self.text("kubeconfig"),
                context=self.text("context"),
                namespace=self.text("namespace"),
                hub_context=self.text("hub_context"),
                cell_contexts=dict(cells),
                planes=tuple(getattr(self.options, "planes", ("project", "hub", "cells"))),
            )
            timeout: timedelta = getattr(self.options, "timeout", timedelta(seconds=5))
            try:
                endpoints = find_endpoints(choice, self._environ)
            except ContextError as failure:
                raise CommandError(str(failure), NOT_JUDGED) from None
            self._reader = SnapshotReader(
                endpoints,
                timeout=timeout,
                sent=self._ports.sent,
                progress=self.terminal.progress,
                transport=self._ports.transport,
                clock=self._clock,
            )
        return self._reader

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def snapshot(
        self, workload: str = "", scope: Scope = Scope.BLOCKS, *, all_projects: bool = False
    ) -> Snapshot:
        """What the planes, or the directory of `--offline`, have for the question."""
        folder, target = self.text("offline"), self.text("save")
        try:
            if folder:
                capture = load(Path(folder))
                given = self.text("namespace")
                if given and given != capture.namespace:
                    raise CommandError(
                        f"--offline: {folder} has namespace {capture.namespace!r}, not {given!r}"
                    )
                self.now = capture.at
                return decode(capture)
            reader = self.reader()
            # A saved directory answers further questions, so that everything is read for it.
            scope = Scope.EVERYTHING if target else scope
            question = Question(reader.namespace, workload, scope, all_projects)
            capture = reader.capture(question)
            self.now = self._clock()
            if target:
                save(capture, Path(target))
                self.terminal.warn(f"saved to {target}")
        except SavedError as failure:
            raise CommandError(str(failure)) from None
        return decode(capture)

    def readable_project(self, snapshot: Snapshot) -> None:
        """Ends a command that needs the project where it could not be read."""
        workloads, facts = snapshot.project.workloads, snapshot.project.facts
        if workloads.access is Access.READ:
            return
        state = workloads.access if facts.access is Access.READ else facts.access
        detail = workloads.detail or facts.detail
        text = f"the project could not be read: {state.value}{f' ({detail})' if detail else ''}"
        raise CommandError(text, NOT_JUDGED)

    def show_json(self, document: JsonObject) -> None:
        self.terminal.show([json.dumps(document, indent=2, ensure_ascii=False)])
