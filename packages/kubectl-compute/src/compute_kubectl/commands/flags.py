"""Flags that several commands share, and the types of their values."""

from __future__ import annotations

import argparse
import re
from datetime import timedelta
from typing import Final

from compute_api_types import names

PLANES: Final = ("project", "hub", "cells")
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


def parse_duration(text: str) -> timedelta:
    """`5s`, `90m`, `1h`, `250ms`; a number alone is seconds."""
    matched = _DURATION.fullmatch(text)
    if matched is None or float(matched[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 5s, 90m or 1h")
    seconds = float(matched[1]) * _UNITS[matched[2]]
    return timedelta(seconds=min(seconds, 10 * 365 * 86400.0))


def parse_planes(text: str) -> tuple[str, ...]:
    chosen = tuple(one.strip() for one in text.split(",") if one.strip())
    wrong = [one for one in chosen if one not in PLANES]
    if wrong or not chosen:
        raise argparse.ArgumentTypeError(f"{text!r}: give some of {','.join(PLANES)}")
    return chosen


def parse_namespace(text: str) -> str:
    if not names.is_dns_label(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a namespace")
    return text


def parse_cell_context(text: str) -> tuple[str, str]:
    cell, equals, context = text.partition("=")
    if not (cell and equals and context):
        raise argparse.ArgumentTypeError(f"{text!r}: give CELL=CONTEXT")
    return cell, context


def add_project_flags(parser: argparse.ArgumentParser) -> None:
    """Kubeconfig, context, namespace and time limit."""
    parser.add_argument("-n", "--namespace", type=parse_namespace, default=None, metavar="NAME")
    parser.add_argument("--context", default="", metavar="NAME", help="context of the project")
    parser.add_argument("--kubeconfig", default="", metavar="FILE")
    parser.add_argument(
        "--timeout",
        type=parse_duration,
        default=timedelta(seconds=5),
        metavar="TIME",
        help="time for each plane (default 5s)",
    )
    parser.add_argument("--no-color", action="store_true", help="no colour on a terminal")


def add_plane_flags(parser: argparse.ArgumentParser) -> None:
    """Which planes are read, and from where."""
    parser.add_argument(
        "--planes",
        type=parse_planes,
        default=PLANES,
        metavar="LIST",
        help="of project,hub,cells; all by default",
    )
    parser.add_argument(
        "--hub-context", default="", metavar="NAME", help="context of the hub (default: hub)"
    )
    parser.add_argument(
        "--cell-context",
        type=parse_cell_context,
        action="append",
        default=[],
        metavar="CELL=NAME",
        help="context of a cell (default: one of its name, else through the hub)",
    )


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Form of the answer, and directories instead of planes."""
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument(
        "--offline", default="", metavar="DIR", help="answer from a saved directory"
    )
    parser.add_argument("--save", default="", metavar="DIR", help="save what was read, redacted")


def add_reading_flags(parser: argparse.ArgumentParser) -> None:
    """All flags of a command that reads and writes nothing."""
    add_project_flags(parser)
    add_plane_flags(parser)
    add_output_flags(parser)
