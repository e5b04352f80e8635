"""The audit of what our locks name: findings stop it, a missing database is reported (S8)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

from tools.audit import audit, parse_pins, read_pins
from tools.workspace import ROOT

LOCK = """\
aiohttp[speedups]==3.13.2 \\
    --hash=sha256:00
Jinja2==2.4.1 ; python_version < "4" \\
    --hash=sha256:01
"""


class Database(HTTPServer):
    """OSV as far as it is asked: one query in a batch, one result."""

    known: dict[str, list[str]]
    body: bytes | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self) -> None:
        database = self.server
        assert isinstance(database, Database)
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        results = [
            {"vulns": [{"id": one} for one in database.known.get(query["package"]["name"], [])]}
            for query in asked["queries"]
        ]
        self.send_response(200 if self.path == "/v1/querybatch" else 404)
        self.end_headers()
        self.wfile.write(database.body or json.dumps({"results": results}).encode())

    @override
    def log_message(self, format: str, *args: object) -> None:
        """A test says nothing."""


@pytest.fixture
def database() -> Iterator[Database]:
    with Database(("127.0.0.1", 0), Answering) as server:
        server.known = {}
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    (tmp_path / "dev.txt").write_text(LOCK, "utf-8")
    return tmp_path


def test_pins_are_names_and_versions() -> None:
    assert parse_pins(LOCK) == [("aiohttp", "3.13.2"), ("jinja2", "2.4.1")]


@pytest.mark.fault("S8")
def test_every_pin_of_every_lock_is_asked_about() -> None:
    names = {name for name, _ in read_pins(ROOT / "locks")}
    for lock in (ROOT / "locks").glob("*.txt"):
        lines = lock.read_text("utf-8").splitlines()
        pinned = [line for line in lines if line and not line.startswith((" ", "#"))]
        assert len(parse_pins(lock.read_text("utf-8"))) == len(pinned), lock.name
    assert {"kopf", "aiohttp", "httpx"} <= names


@pytest.mark.fault("S8")
def test_nothing_known_is_told_as_such(database: Database, locks: Path) -> None:
    assert audit(locks, database.address) == (
        ["audit: 2 pins, 0 with known vulnerabilities"],
        False,
    )


@pytest.mark.fault("S8")
def test_what_is_known_is_named_and_stops_a_release(database: Database, locks: Path) -> None:
    database.known = {"jinja2": ["GHSA-1", "PYSEC-2"]}
    lines, has_findings = audit(locks, database.address)
    assert lines[0] == "jinja2==2.4.1: GHSA-1, PYSEC-2"
    assert has_findings


@pytest.mark.fault("S8")
@pytest.mark.parametrize("body", [b"<html>", b'{"results": []}', b'{"answer": 42}'])
def test_what_is_no_answer_is_no_audit(database: Database, locks: Path, body: bytes) -> None:
    database.body = body
    (line,), has_findings = audit(locks, database.address)
    assert line.startswith("audit: not run: ")
    assert not has_findings


@pytest.mark.fault("S8")
@pytest.mark.parametrize("server", ["http://127.0.0.1:9", "file:///etc/passwd"])
def test_a_database_out_of_reach_is_told_and_not_taken_for_a_clean_one(
    locks: Path, server: str
) -> None:
    (line,), has_findings = audit(locks, server)
    assert line.startswith("audit: not run: ")
    assert not has_findings
