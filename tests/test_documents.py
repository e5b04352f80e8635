"""Documents lead somewhere, and the specification is the one we were given or a corrected one."""

from tools.doc_commands import anchor_of, broken_links, commands
from tools.workspace import ROOT


def test_no_link_leads_nowhere() -> None:
    assert not list(broken_links(ROOT))


def test_the_readme_shows_the_two_commands() -> None:
    shown = {command.line for command in commands(ROOT) if command.page == "README.md"}
    assert {"./dev demo", "./dev test"} <= shown


def test_a_heading_becomes_the_anchor_a_browser_uses() -> None:
    assert anchor_of("Who writes what") == "who-writes-what"
    assert anchor_of("4.1 `deploy/`") == "41-deploy"


def test_the_project_speaks_of_itself_alone() -> None:
    mentioned = [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.md", "docs/**/*.md", "packages/**/*.md", "locks/*", "packages/**/*.py")
        for path in ROOT.glob(pattern)
        if path.is_file() and "/work/" in path.read_text("utf-8")
    ]
    assert not mentioned
