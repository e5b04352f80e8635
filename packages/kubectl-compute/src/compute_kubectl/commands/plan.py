"""`plan -f FILE`: what a Workload would do, with nothing written.

The rules of admission are checked here; a server dry run adds what only the server knows, such as
the cities that are served. Without the right for it that part is left out, with a note.
"""

from __future__ import annotations

import argparse
import http.client
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from compute_kubeconfig.strict_yaml import DocumentError, parse_document
from compute_kubectl.commands import flags
from compute_kubectl.commands.exits import NOT_READY, READY, CommandError
from compute_kubectl.commands.session import Session
from compute_kubectl.read import kinds
from compute_kubectl.read.questions import Scope
from compute_kubectl.read.transport import PlaneError
from compute_kubectl.render.plan import plan_document, render_plan
from compute_kubectl.snapshot.json_reads import object_at, text_at
from compute_kubectl.views.plan import (
    WorkloadPlan,
    derive_changes,
    derive_needs,
    describe_references,
    review,
)

EXAMPLES: Final = """\
  kubectl compute plan -f workload.yaml -n shop
  kubectl compute plan -f workload.yaml --offline
"""
# Twice what an API server stores.
MOST_BYTES: Final = 3 << 20
MOST_PROBLEMS: Final = 5


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--filename", required=True, metavar="FILE", help="- is stdin")
    parser.add_argument(
        "--offline", dest="rules_only", action="store_true", help="the rules alone, without a plane"
    )
    flags.add_project_flags(parser)
    flags.add_plane_flags(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def run(session: Session) -> int:
    wanted = _load(session.text("filename"))
    is_offline = session.flag("rules_only")
    plan = review(wanted, None) if is_offline else _plan(session, wanted)
    if session.wants_json:
        session.show_json(plan_document(plan))
    else:
        width = session.terminal.width
        session.terminal.show(render_plan(plan, width, is_offline=is_offline))
    return NOT_READY if plan.refusals or plan.waits else READY


def _load(filename: str) -> JsonObject:
    try:
        if filename == "-":
            text = sys.stdin.read(MOST_BYTES + 1)
        else:
            with Path(filename).open(encoding="utf-8") as file:
                text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise CommandError(f"{filename} is over {MOST_BYTES >> 20} MiB")
        document = parse_document(text)
    except OSError as failure:
        raise CommandError(f"{filename}: {failure.strerror or failure}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{filename} is not UTF-8 text") from None
    except DocumentError as refused:
        problems = "; ".join(str(one) for one in refused.problems[:MOST_PROBLEMS])
        raise CommandError(f"{filename}: {problems}") from None
    if text_at(document, "kind") != "Workload":
        raise CommandError(f"{filename}: kind must be Workload, one document in a file")
    if not text_at(document, "metadata", "name"):
        raise CommandError(f"{filename}: metadata.name must be set")
    return document


def _plan(session: Session, wanted: JsonObject) -> WorkloadPlan:
    name = text_at(wanted, "metadata", "name")
    _check_namespace(session, wanted)
    snapshot = session.snapshot(name, Scope.PLAN)
    session.readable_project(snapshot)
    found = _find(session, name)
    reviewed = review(wanted, found)
    if reviewed.refusals:
        return reviewed
    tried = _try(session, name, wanted, found)
    if tried.refusal:
        return replace(reviewed, refusals=(tried.refusal,), message=tried.refusal)
    # As the server would store it: with its defaults a template has another hash than the file's.
    stored = tried.document or wanted
    changes = derive_changes(snapshot, stored)
    notes = (*reviewed.notes, *tried.notes, *describe_references(wanted))
    return replace(
        reviewed, changes=changes, needs=derive_needs(snapshot, stored, changes), notes=notes
    )


def _check_namespace(session: Session, wanted: JsonObject) -> None:
    given, namespace = text_at(wanted, "metadata", "namespace"), session.reader().namespace
    if given and given != namespace:
        raise CommandError(f"metadata.namespace is {given!r}, the command reads {namespace!r}: -n")


def _find(session: Session, name: str) -> JsonObject | None:
    """The stored Workload as the server has it."""
    reader = session.reader()
    endpoint = reader.endpoints.project
    if endpoint is None:
        raise CommandError("the project is needed: leave --planes out")
    reading = reader.client("project", endpoint).read_one(kinds.WORKLOADS, name, reader.namespace)
    return reading.items[0] if reading.items else None


@dataclass(frozen=True, slots=True)
class _Tried:
    """The answer of the server's dry run: the object as it would be stored, or a refusal."""

    document: JsonObject | None = None
    refusal: str = ""
    notes: tuple[str, ...] = ()


def _try(session: Session, name: str, wanted: JsonObject, found: JsonObject | None) -> _Tried:
    reader = session.reader()
    endpoint = reader.endpoints.project
    if endpoint is None:
        return _Tried()
    body: JsonObject = {**wanted, "metadata": {**object_at(wanted, "metadata")}}
    metadata = object_at(body, "metadata")
    metadata["namespace"] = reader.namespace
    path, method = kinds.WORKLOADS.path(reader.namespace), "POST"
    if found is not None:
        metadata["resourceVersion"] = text_at(found, "metadata", "resourceVersion")
        path, method = kinds.WORKLOADS.path(reader.namespace, name), "PUT"
    client = reader.client("project", endpoint)
    try:
        answer = client.send(method, path, body, content_type="application/json", dry_run=True)
    except PlaneError as failure:
        return _Tried(notes=(f"no dry run on the server: {failure.detail}",))
    message = text_at(answer.document, "message") or f"the server answered {answer.status}"
    if answer.status < http.client.BAD_REQUEST:
        document = answer.document
        return _Tried(document if isinstance(document, dict) else None)
    if answer.status in {http.client.UNAUTHORIZED, http.client.FORBIDDEN}:
        return _Tried(notes=(f"no dry run on the server: {message}",))
    return _Tried(refusal=message)
