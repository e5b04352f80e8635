"""`tree`: the objects of a Workload on all planes, each below its cause."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Final

from compute_kubectl.commands import flags
from compute_kubectl.commands.exits import NOT_JUDGED, NOT_READY, READY
from compute_kubectl.commands.session import Session
from compute_kubectl.commands.workload_lookup import require_workload
from compute_kubectl.explain.explain import Subject
from compute_kubectl.read.questions import Scope
from compute_kubectl.render.view_documents import tree_document
from compute_kubectl.render.views import render_tree
from compute_kubectl.views.tree import derive_tree, has_bad, keep_bad

EXAMPLES: Final = """\
  kubectl compute tree web -n shop
  kubectl compute tree web --only-bad
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a Workload")
    parser.add_argument("--only-bad", action="store_true", help="only what is not well")
    flags.add_reading_flags(parser)


def run(session: Session) -> int:
    name = session.text("name")
    snapshot = session.snapshot(name, Scope.EVERYTHING)
    require_workload(snapshot, name)
    tree = derive_tree(snapshot, session.now, Subject(name))
    only_bad = session.flag("only_bad")
    if session.wants_json:
        root = keep_bad(tree.root) if only_bad and tree.root else tree.root
        session.show_json(tree_document(replace(tree, root=root)))
    else:
        session.terminal.show(render_tree(tree, session.terminal.width, only_bad=only_bad))
    if tree.root is None:
        return NOT_JUDGED
    return NOT_READY if has_bad(tree.root) else READY
