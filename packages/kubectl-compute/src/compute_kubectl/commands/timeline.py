"""`timeline`: what happened to a Workload on all planes, oldest first."""

from __future__ import annotations

import argparse
from typing import Final

from compute_kubectl.commands import flags
from compute_kubectl.commands.exits import READY
from compute_kubectl.commands.session import Session
from compute_kubectl.commands.workload_lookup import require_workload
from compute_kubectl.explain.explain import Subject
from compute_kubectl.read.questions import Scope
from compute_kubectl.render.view_documents import timeline_document
from compute_kubectl.render.views import render_timeline
from compute_kubectl.views.timeline import derive_timeline

EXAMPLES: Final = """\
  kubectl compute timeline web -n shop
  kubectl compute timeline web --since 15m
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a Workload")
    parser.add_argument(
        "--since", type=flags.parse_duration, default=None, metavar="TIME", help="such as 1h"
    )
    flags.add_reading_flags(parser)


def run(session: Session) -> int:
    name = session.text("name")
    snapshot = session.snapshot(name, Scope.EVERYTHING)
    require_workload(snapshot, name)
    since = session.options.since
    timeline = derive_timeline(snapshot, session.now, Subject(name), since=since)
    if session.wants_json:
        session.show_json(timeline_document(timeline))
    else:
        session.terminal.show(render_timeline(timeline, session.terminal.width))
    return READY
