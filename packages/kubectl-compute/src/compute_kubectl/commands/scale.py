"""`scale NAME --replicas N [--placement P]`: the number of Instances in each city."""

from __future__ import annotations

import argparse
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.commands.changes import WorkloadChange, add_change_flags
from compute_kubectl.commands.exits import CommandError
from compute_kubectl.commands.session import Session
from compute_kubectl.render.layout import clean
from compute_kubectl.snapshot.json_reads import number_at, object_at, objects_at, text_at

EXAMPLES: Final = """\
  kubectl compute scale web --replicas 3 -n shop
  kubectl compute scale web --replicas 5 --placement main --yes
"""
MOST_REPLICAS: Final = 2**31 - 1


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_change_flags(parser)
    parser.add_argument(
        "--replicas", type=parse_replicas, required=True, metavar="N", help="in each city"
    )
    parser.add_argument(
        "--placement", default="", metavar="NAME", help="needed where it has several"
    )


def parse_replicas(text: str) -> int:
    if not text.isdecimal() or not text.isascii() or int(text) > MOST_REPLICAS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of replicas")
    return int(text)


def run(session: Session) -> int:
    change = WorkloadChange(session)
    replicas: int = session.options.replicas
    placements = list(objects_at(change.document, "spec", "placements"))
    chosen = _choose([text_at(one, "name") for one in placements], session.text("placement"))
    before = next(
        number_at(one, "scaleSettings", "minReplicas")
        for one in placements
        if text_at(one, "name") == chosen
    )
    text = (
        f"Workload {clean(change.namespace)}/{clean(change.name)}, placement {clean(chosen)}: "
        f"{before} → {replicas} replicas in each city"
    )
    return change.apply({"spec": {"placements": _scaled(placements, chosen, replicas)}}, text)


def _choose(known: list[str], wanted: str) -> str:
    if wanted and wanted not in known:
        raise CommandError(f"placement {wanted!r} does not exist; there are: {', '.join(known)}")
    if not wanted and len(known) != 1:
        raise CommandError(f"give --placement, one of: {', '.join(known) or 'none'}")
    return wanted or known[0]


def _scaled(placements: list[JsonObject], chosen: str, replicas: int) -> list[JsonValue]:
    """All placements: a merge patch replaces a list as a whole."""
    return [
        {
            **one,
            "scaleSettings": {**object_at(one, "scaleSettings"), "minReplicas": replicas},
        }
        if text_at(one, "name") == chosen
        else one
        for one in placements
    ]
