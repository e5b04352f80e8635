"""The documentation site: links that fit the repository and the site, nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest
import yaml
from typing_extensions import override

from tools.compatibility import PAGE, read_ci_python, render, wanted_page
from tools.reference_kinds import render as render_kinds
from tools.reference_kinds import walk
from tools.site_hooks import EXCLUDED, address_of, expand, point_to_repository, slugify
from tools.site_links import SITE, find_problems
from tools.workspace import PYTHONS, ROOT, read_sessions

BLOB: Final = "https://github.com/datum-cloud/compute-federation/blob/main"


@pytest.mark.parametrize(
    ("target", "page", "wanted"),
    [
        ("../architecture.md#planes", "howto/install.md", "../architecture.md#planes"),
        ("#planes", "architecture.md", "#planes"),
        ("https://example.net/x", "index.md", "https://example.net/x"),
        ("../CONTRIBUTING.md#manifests", "index.md", f"{BLOB}/CONTRIBUTING.md#manifests"),
        ("../../deploy", "howto/install.md", f"{BLOB.replace('blob', 'tree')}/deploy"),
        ("adr", "index.md", "adr/README.md"),
        ("template.md", "adr/README.md", f"{BLOB}/docs/adr/template.md"),
    ],
)
def test_a_link_leads_into_the_site_or_to_the_repository(
    target: str, page: str, wanted: str
) -> None:
    assert address_of(target, page) == wanted


def test_links_in_code_are_left_alone() -> None:
    text = "[a](../README.md) `[b](../README.md)`\n```\n[c](../README.md)\n```\n"
    pointed = point_to_repository(text, "index.md")
    assert pointed == text.replace("[a](../README.md)", f"[a]({BLOB}/README.md)")


def test_headings_have_the_anchors_of_the_repository() -> None:
    assert slugify("4.1 `deploy/`", "-") == "41-deploy"


def test_the_navigation_takes_every_page_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "adr").mkdir()
    for name in ("b.md", "a.md", "README.md", "template.md"):
        (tmp_path / "adr" / name).write_text("# x")
    nav = [{"Decisions": "adr/*"}, "index.md"]
    pages = ["adr/README.md", "adr/a.md", "adr/b.md"]
    assert expand(nav, tmp_path) == [{"Decisions": pages}, "index.md"]


def test_every_page_is_in_the_navigation() -> None:
    """A strict build fails without it, and only where mkdocs is installed."""
    text = (ROOT / "mkdocs.yaml").read_text("utf-8")
    nav = yaml.safe_load(text[text.index("nav:\n") :])["nav"]
    listed = set(re.findall(r"[\w./-]+\.md", str(expand(nav, ROOT / "docs"))))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == {EXCLUDED}
    assert listed - pages == set()


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="b.html#there">', ""),
        ('<a href="https://example.net/">', ""),
        ('<a href="c.html">', "index.html: c.html does not exist"),
        ('<a href="b.html#gone">', "index.html: b.html#gone names no anchor"),
        (
            '<script src="https://cdn.example.net/x.js">',
            "index.html: loads https://cdn.example.net/x.js from elsewhere",
        ),
    ],
)
def test_faults_of_built_pages_are_found(tmp_path: Path, html: str, problem: str) -> None:
    (tmp_path / "index.html").write_text(html)
    (tmp_path / "b.html").write_text('<h2 id="there">')
    assert list(find_problems(tmp_path)) == ([problem] if problem else [])


def test_a_site_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    assert list(find_problems(tmp_path)) == [f"{tmp_path.name} has no page; run `./dev site`"]


def test_the_site_is_built_strictly_after_the_commands_of_the_pages() -> None:
    sessions = read_sessions()
    assert '"mkdocs", "build", "--strict"' in sessions["site"]
    assert 'tool(session, "site_links")' in sessions["site"]
    assert 'session.notify("site"' in sessions["docs"]
    assert "font: false" in (ROOT / "mkdocs.yaml").read_text("utf-8")


def test_the_page_of_the_kinds_has_every_field() -> None:
    page = render_kinds()
    for path in (
        "spec.placements[].cityCodes",
        "spec.template.spec.runtime.sandbox.containers[].image",
        "status.gateway",
        "spec.controller.schedulingGates[].name",
    ):
        assert f"| `{path}` |" in page
    assert "| `spec.placements[].cityCodes` | set of string | yes |" in page


def test_a_schema_is_walked_into_lists_and_maps() -> None:
    text = {"type": "string"}
    inner = {"type": "object", "properties": {"b": text}, "required": ["b"]}
    schema = {
        "properties": {
            "a": {"type": "array", "items": inner},
            "m": {"type": "object", "additionalProperties": inner},
        }
    }
    found = [(one.path, one.is_required) for one in walk(schema, "spec")]  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert found == [
        ("spec.a", False),
        ("spec.a[].b", True),
        ("spec.m", False),
        ("spec.m{}.b", True),
    ]


def test_the_compatibility_matrix_is_that_of_ci(tmp_path: Path) -> None:
    assert read_ci_python() == PYTHONS[0]
    assert render() in PAGE.read_text("utf-8")
    page = tmp_path / "README.md"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="has no marks"):
        wanted_page(page)


# --- in a real browser ----------------------------------------------------------------------------


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder without a line per request."""

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(SITE)))
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium is on the PATH")
@pytest.mark.skipif(not SITE.exists(), reason="the site is not built; run `./dev site`")
@pytest.mark.parametrize(
    ("page", "heading"),
    [("index.html", "Compute Federation"), ("reference/kinds.html", "The three kinds")],
)
def test_a_browser_shows_a_page(address: str, tmp_path: Path, page: str, heading: str) -> None:
    """Without any other host; the picture stays beside the site, in `.site-pictures/`."""
    pictures = ROOT / ".site-pictures"
    pictures.mkdir(exist_ok=True)
    picture = pictures / f"{Path(page).stem}.png"
    picture.unlink(missing_ok=True)
    options = (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        *("--window-size=1280,900", f"--user-data-dir={tmp_path}", "--virtual-time-budget=5000"),
    )
    shown = subprocess.run(
        ["chromium", *options, f"--screenshot={picture}", "--dump-dom", f"{address}/{page}"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
    # Chromium prints the document only where it makes no picture.
    dumped = (
        shown.stdout
        or subprocess.run(
            ["chromium", *options, "--dump-dom", f"{address}/{page}"],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout
    )
    assert f">{heading}<" in dumped.replace("\n", "")
    assert "md-search" in dumped
