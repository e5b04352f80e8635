"""`ui`: serves a page on loopback: cities, Workloads and what blocks them, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
from typing import Final

from compute_kubectl.commands import flags
from compute_kubectl.commands.exits import NOT_JUDGED, READY, CommandError
from compute_kubectl.commands.session import Session
from compute_kubectl.read.questions import Question, Scope
from compute_kubectl.snapshot.planes import Snapshot
from compute_kubectl.ui.refresh import Refresher
from compute_kubectl.ui.server import PageServer

EXAMPLES: Final = """\
  kubectl compute ui -n shop
  kubectl compute ui --port 8123 --planes project
"""
HIGHEST_PORT: Final = 65535


def parse_port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give 0 to {HIGHEST_PORT}")
    return int(text)


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=parse_port, default=0, metavar="N", help="of 127.0.0.1; 0 is any free one"
    )
    flags.add_project_flags(parser)
    flags.add_plane_flags(parser)


def run(session: Session) -> int:
    session.terminal.is_live = False  # a line for each read would bury the address
    reader = session.reader()
    question = Question(reader.namespace, scope=Scope.EVERYTHING)

    async def read() -> Snapshot:
        return await asyncio.to_thread(reader.read, question)

    try:
        asyncio.run(_serve(session, Refresher(read)))
    except KeyboardInterrupt:
        return READY
    return READY


async def _serve(session: Session, refresher: Refresher) -> None:
    port: int = session.options.port
    try:
        async with PageServer(refresher, port=port) as server:
            session.terminal.show([server.url, "Its token is in the address; Ctrl-C ends it."])
            session.terminal.out.flush()
            await server.run()
    except OSError as failure:
        detail = failure.strerror or str(failure)
        raise CommandError(f"port {port} of 127.0.0.1: {detail}", NOT_JUDGED) from None
