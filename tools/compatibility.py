"""Writes the compatibility matrix of `README.md` from what CI runs.

```
Python        the releases that `requires-python` promises, and the one of the workflow `ci`
Kubernetes,
Karmada       the modules that the real planes are built from
Milo          the release whose CRDs and answers are recorded, in the page of its tests
```
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Final

from e2e.backends.kind.configuration import NODE_IMAGE
from e2e.backends.kind.karmada import VERSION as KIND_KARMADA
from e2e.harness.programs.binaries import KARMADA, KUBERNETES, ToolModule, parse_required_version
from tools.reference_pages import draw_table
from tools.workspace import PYTHONS, ROOT

PAGE: Final = ROOT / "README.md"
BEGIN: Final = "<!-- compatibility: begin, by `./dev generate` -->\n"
END: Final = "<!-- compatibility: end -->\n"
_MARKED: Final = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_RECORDED: Final = "packages/sim-planes/tests/unit/test_sim_external_schemas.py"


def render() -> str:
    """The lines between the marks."""
    lowest = read_ci_python()
    newer = ", ".join(one for one in PYTHONS if one != lowest)
    node = NODE_IMAGE.rpartition(":")[2]
    recorded = "its CRDs field by field, and its recorded answers; Milo itself is not run"
    rows = [
        ("Python", lowest, newer, "unit and contract tests"),
        ("Kubernetes", built(KUBERNETES), node, "every scenario, on hub, cells and project planes"),
        ("Karmada", built(KARMADA), KIND_KARMADA, "every scenario on a real hub"),
        ("Milo", read_milo(), "", recorded),
    ]
    head = ("", "every change", "nightly", "what runs with it")
    return f"{BEGIN}\n{draw_table(head, rows)}\n{END}"


def built(module: ToolModule) -> str:
    path = ROOT / "e2e" / "harness" / "programs" / module.name / "go.mod"
    return parse_required_version(path.read_text("utf-8"), module.requires)


def read_ci_python() -> str:
    text = (ROOT / ".github" / "workflows" / "ci.yaml").read_text("utf-8")
    return _only(re.findall(r'^  PYTHON: "([\d.]+)"', text, re.MULTILINE), "PYTHON of ci.yaml")


def read_milo() -> str:
    text = (ROOT / _RECORDED).read_text("utf-8")
    return _only(re.findall(r"Milo (v\d+\.\d+\.\d+)", text), f"the release of Milo in {_RECORDED}")


def _only(found: list[str], what: str) -> str:
    if len(set(found)) != 1:
        raise ValueError(f"reading {what}: found {found}")
    return found[0]


def wanted_page(page: Path = PAGE) -> str:
    text = page.read_text("utf-8")
    if not _MARKED.search(text):
        raise ValueError(f"{page.name} has no marks for the compatibility matrix")
    return _MARKED.sub(lambda _: render(), text, count=1)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the compatibility matrix of README.md.")
    parser.add_argument("--check", action="store_true", help="only say whether it is out of date")
    check: bool = parser.parse_args().check
    wanted = wanted_page()
    is_stale = PAGE.read_text("utf-8") != wanted
    if is_stale and check:
        print("README.md: the compatibility matrix is out of date; run `./dev generate`")
    elif is_stale:
        PAGE.write_text(wanted, "utf-8", newline="\n")
    return 1 if check and is_stale else 0


if __name__ == "__main__":
    sys.exit(main())
