"""`quota`: limits of the project, which Workloads use them, and what waits."""

from __future__ import annotations

import argparse
from typing import Final

from compute_kubectl.commands import flags
from compute_kubectl.commands.exits import NOT_JUDGED, NOT_READY, READY
from compute_kubectl.commands.session import Session
from compute_kubectl.read.questions import Scope
from compute_kubectl.render.view_documents import quota_document
from compute_kubectl.render.views import render_quota
from compute_kubectl.snapshot.access import Access
from compute_kubectl.views.quota import derive_quota

EXAMPLES: Final = """\
  kubectl compute quota -n shop
  kubectl compute quota -o json
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    flags.add_project_flags(parser)
    flags.add_output_flags(parser)


def run(session: Session) -> int:
    snapshot = session.snapshot(scope=Scope.QUOTA)
    view = derive_quota(snapshot, session.now)
    if session.wants_json:
        session.show_json(quota_document(view))
    else:
        session.terminal.show(render_quota(view, session.terminal.width))
    if view.access is not Access.READ:
        return NOT_JUDGED
    return NOT_READY if any(one.waiting for one in view.resources) else READY
