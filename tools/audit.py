"""Asks a database of vulnerabilities about everything our locks name (S8).

The database is OSV's, or one with the same interface (`OSV_URL`). An audit without a reachable
database is reported as not run, never as clean. Only names and versions are sent.
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

PUBLIC: Final = "https://api.osv.dev"
TIMEOUT_SECONDS: Final = 30
PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*])?==([^ ;\\]+)", re.MULTILINE)


class NotRunError(Exception):
    """There is no database, or what answers is none."""


class _Vulnerability(BaseModel):
    id: str


class _Result(BaseModel):
    vulns: list[_Vulnerability] = []


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    results: list[_Result]


def read_pins(locks: Path) -> list[tuple[str, str]]:
    """Every distribution and version that any lock names."""
    found = {pin for lock in locks.glob("*.txt") for pin in parse_pins(lock.read_text("utf-8"))}
    return sorted(found)


def parse_pins(lock: str) -> list[tuple[str, str]]:
    return [(name.lower(), version) for name, version in PINNED.findall(lock)]


def find_known(pins: Iterable[tuple[str, str]], server: str = "") -> Mapping[str, list[str]]:
    """Ids of what is known against a pin (`name==version`); `NotRunError` without a database."""
    listed = [*pins]
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
        for name, version in listed
    ]
    answer = _ask(server or os.environ.get("OSV_URL", PUBLIC), {"queries": queries})
    if len(answer.results) != len(listed):
        raise NotRunError(f"{len(listed)} questions were given {len(answer.results)} answers")
    return {
        f"{name}=={version}": [one.id for one in result.vulns]
        for (name, version), result in zip(listed, answer.results, strict=True)
        if result.vulns
    }


def _ask(server: str, question: Mapping[str, object]) -> _Answer:
    if not server.startswith(("https://", "http://127.0.0.1:")):
        raise NotRunError(f"{server!r} is no https address")
    request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
        f"{server}/v1/querybatch",
        data=json.dumps(question).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:  # noqa: S310 - same
            return _Answer.model_validate_json(reply.read())
    except (OSError, ValidationError) as failed:  # URLError and timeouts are OSErrors
        raise NotRunError(f"{server}: {failed}") from failed


def audit(locks: Path, server: str = "") -> tuple[list[str], bool]:
    """What to print, and whether anything is known against us."""
    pins = read_pins(locks)
    try:
        known = find_known(pins, server)
    except NotRunError as why:
        return [f"audit: not run: {why}"], False
    lines = [f"{pin}: {', '.join(ids)}" for pin, ids in known.items()]
    return [*lines, f"audit: {len(pins)} pins, {len(known)} with known vulnerabilities"], bool(
        known
    )
