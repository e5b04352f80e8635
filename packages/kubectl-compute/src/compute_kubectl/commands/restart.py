"""`restart NAME`: all Instances are replaced, one of a city at a time."""

from __future__ import annotations

import argparse
from typing import Final

from compute_api_types import labels
from compute_api_types.meta import format_timestamp
from compute_api_types.wire import JsonObject
from compute_kubectl.commands.changes import WorkloadChange, add_change_flags
from compute_kubectl.commands.session import Session
from compute_kubectl.render.layout import clean

EXAMPLES: Final = """\
  kubectl compute restart web -n shop
  kubectl compute restart web --yes
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_change_flags(parser)


def run(session: Session) -> int:
    change = WorkloadChange(session)
    stamp = format_timestamp(session.now)
    annotations: JsonObject = {labels.RESTARTED_AT: stamp}
    text = (
        f"Workload {clean(change.namespace)}/{clean(change.name)}: every Instance is replaced, one "
        f"of a city at a time ({labels.RESTARTED_AT}={stamp})"
    )
    return change.apply({"spec": {"template": {"metadata": {"annotations": annotations}}}}, text)
