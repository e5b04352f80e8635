"""Documents lead somewhere, their commands are run, and they speak of the project alone."""

from __future__ import annotations

import pytest

from tools.doc_blocks import BLANK, Kind, Shown, find_shown
from tools.doc_commands import RUN_BY_CI, anchor_of, broken_links, commands, run_here, shown
from tools.workspace import ROOT, read_sessions


def test_no_link_leads_nowhere() -> None:
    assert not list(broken_links(ROOT))


def test_the_readme_shows_the_two_commands() -> None:
    found = {command.line for command in commands(ROOT) if command.page == "README.md"}
    assert {"./dev demo", "./dev test"} <= found


def test_a_heading_becomes_the_anchor_a_browser_uses() -> None:
    assert anchor_of("Who writes what") == "who-writes-what"
    assert anchor_of("4.1 `deploy/`") == "41-deploy"


def test_no_page_shows_a_command_that_nobody_runs() -> None:
    assert [one.place for one in shown(ROOT) if one.kind is Kind.UNMARKED] == []


def test_every_how_to_shows_commands_that_are_run() -> None:
    is_run = {one.page for one in shown(ROOT) if one.kind is Kind.SCRIPT}
    pages = {page.relative_to(ROOT).as_posix() for page in ROOT.glob("docs/howto/*.md")}
    # The commands of the first are those of the runbook that it leads to; the second is a contract.
    contracts = {"docs/howto/decommission-a-cell.md", "docs/howto/write-a-provider.md"}
    assert pages - is_run == contracts
    assert "docs/howto/runbooks/decommission-cell.md" in is_run


PAGE = """\
Look with `kubectl get pods`, or `kubectl get <kind>`.

```console
$ ./dev demo
its output
```

1. In a list:

   ```sh
   kubectl get a
   kubectl get b
   ```

<!-- not run: needs a cloud -->
```text
kubectl get c
```

```
kubectl get d
```

```text
only words
```

```yaml
# my/file.yaml
a: 1
```
"""


@pytest.mark.parametrize(
    ("line", "kind", "text", "note"),
    [
        (1, Kind.INLINE, "kubectl get pods", ""),
        (1, Kind.NOT_RUN, "kubectl get <kind>", BLANK),
        (3, Kind.CONSOLE, "./dev demo", ""),
        (10, Kind.SCRIPT, "kubectl get a\nkubectl get b\n", ""),
        (16, Kind.NOT_RUN, "kubectl get c\n", "needs a cloud"),
        (20, Kind.UNMARKED, "kubectl get d\n", ""),
        (28, Kind.FILE, "# my/file.yaml\na: 1\n", "my/file.yaml"),
    ],
)
def test_a_page_is_read_as_its_reader_would(line: int, kind: Kind, text: str, note: str) -> None:
    found = find_shown("page.md", PAGE, has_inline=True)
    assert len(found) == 7
    assert (line, kind, text, note) in [(one.line, one.kind, one.text, one.note) for one in found]


def test_the_project_speaks_of_itself_alone() -> None:
    mentioned = [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.md", "docs/**/*.md", "packages/**/*.md", "locks/*", "packages/**/*.py")
        for path in ROOT.glob(pattern)
        if path.is_file() and "/work/" in path.read_text("utf-8")
    ]
    assert not mentioned


@pytest.mark.parametrize(
    ("command", "failures"),
    [
        ("echo something", []),
        ("echo aside >&2", []),
        ("true", ["README.md:1: `true` printed nothing"]),
        ("echo half; exit 3", ["README.md:1: `echo half; exit 3` exited 3"]),
    ],
)
def test_a_command_that_prints_nothing_fails_the_run(command: str, failures: list[str]) -> None:
    assert list(run_here([Shown("README.md", 1, Kind.CONSOLE, command)])) == failures


def test_sessions_that_ci_runs_are_not_run_twice(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(run_here([Shown("README.md", 1, Kind.CONSOLE, "./dev test")])) == []
    assert "not run here, `.ci/run` runs it: ./dev test" in capfd.readouterr().out


def test_ci_really_runs_what_documents_leave_to_it() -> None:
    assert set(RUN_BY_CI) == {"./dev test", "./dev check"}
    assert "./dev test" in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert '("check", *units' in read_sessions()["test"]
