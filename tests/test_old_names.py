"""Names that the redesign replaced: none is left as an identifier or a module name.

Prose is not read. A row is an old name and the folders in which it meant the thing that has another
name now; elsewhere the same word may be right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
KIT: Final = "packages/operator-kit/src"
MANAGEMENT: Final = "packages/management-operator/src"
CELL: Final = "packages/cell-operator/src"
OPERATORS: Final = (MANAGEMENT, CELL)
PRODUCT: Final = (KIT, *OPERATORS)
SIMULATION: Final = "packages/sim-planes/src"
E2E: Final = "e2e"
EVERYWHERE: Final = ("packages", E2E, "bench", "tools", "tests")

OLD_NAMES: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (
        (
            *("House", "Frame", "Wired", "voices", "errands", "Station", "Crew", "Lane"),
            *("PatientLane", "Desk", "Means", "teller", "Packing", "go_on", "packing", "Outline"),
            *("Tempo", "Pace", "WriteGate", "parse_served", "parse_echo"),
            *("acting_as", "Illegible", "Sparing", "of_header", "of_spec", "Delivered"),
            *("Judgement", "judge_pass", "pay_owed", "owed", "is_behind", "on_engaged"),
            *("is_in_work", "OnlyUnder", "IfNone", "IfGone", "IfUnchanged", "Stretch"),
            *("Measures", "speaking_as", "build_scouts", "build_writers", "told_conditions"),
            *("Sayings", "judge_standing", "Consulting", "is_doubted", "Looker", "Settler"),
            *("Vacancies", "Waker", "Occupied", "Vacant", "Theatre", "Backstage"),
            *("Told", "Watched", "Kube", "Recent", "Reach", "Ways", "Steps", "Fresh", "Lookups"),
            *("Episodes", "Ear", "tether", "nowhere", "first_touch", "find_witnessed"),
            *("find_proven", "read_beside", "front_door", "keyed_work", "is_alike"),
            *("quota_gate", "hub_side", "hub_caches", "outlines", "showing", "forgetting"),
            *("LookSteps", "ReclaimSteps"),
        ),
        EVERYWHERE,
    ),
    # Public names of quota-client, with which its users meet them.
    (("Surroundings",), (KIT, MANAGEMENT, SIMULATION)),
    (("Verdict",), (KIT, MANAGEMENT)),
    (("Exchange",), PRODUCT),
    (("knobs",), (*PRODUCT, SIMULATION)),
    (("Part", "attend", "Own", "Pause", "Memory", "Waiting"), PRODUCT),
    (("Call", "Reply", "Answer", "Connection", "Changed", "Removed"), (KIT,)),
    (("View", "Entry", "Pass", "share", "Emit", "Wait", "heap"), PRODUCT),
    (("provisional", "settle", "is_final", "whole", "parts"), (KIT,)),
    (("withdraw", "patient", "FRESH", "BEHIND", "keep", "prepare"), (KIT,)),
    (("wake", "woken", "found", "answers", "told", "said"), PRODUCT),
    (("serving", "assembly", "Tools", "Places", "Word", "fresh_reads"), OPERATORS),
    (("Place", "Standing", "mapping", "copying", "finalizing"), OPERATORS),
    (("holding", "building", "removing", "verifying", "wanted"), OPERATORS),
    (("worker", "runner", "Subject", "Occupant", "Case", "Payer", "Known"), (CELL,)),
    (("Said", "Finding", "Found", "Ledger", "Record", "LiveCell"), (CELL,)),
    (("Around", "Gate", "Tell", "census", "sweep", "sweeping"), (CELL,)),
    (("look", "leftovers", "Copies", "hub_answers", "same_server"), (CELL,)),
    (("passes", "Stage", "crew", "harm", "people", "judging"), (E2E,)),
    (("collecting", "ways", "neighbours", "found"), (E2E, SIMULATION)),
    (("following", "passes", "front", "door"), (SIMULATION,)),
)

# Names of libraries: the field of quota-client's verdicts, and aiohttp's class.
OF_LIBRARIES: Final = (
    ("packages/cell-operator/src/compute_cell_operator/quota/", "found"),
    ("packages/operator-kit/src/compute_operator_kit/client/transport/aiohttp.py", "Connection"),
)


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """Every identifier of a file with its line: definitions, arguments, attributes, imports."""
    yield 1, path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        line = getattr(node, "lineno", 1)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield line, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield line, name
            case ast.ClassDef(name=name) | ast.keyword(arg=str(name)):
                yield line, name
            case ast.alias(name=name, asname=other):
                yield from (
                    (line, word) for word in (*name.split("."), *([other] if other else []))
                )
            case ast.ImportFrom(module=str(module)):
                yield from ((line, word) for word in module.split("."))
            case _:
                pass


def old_names_in(path: Path, forbidden: Iterable[str]) -> list[str]:
    wrong = frozenset(forbidden)
    uses = {(line, name) for line, name in names_in(path) if name.lstrip("_") in wrong}
    return [f"{path.relative_to(ROOT)}:{line} {name}" for line, name in sorted(uses)]


def sources_of(folder: str) -> Iterator[Path]:
    yield from sorted((ROOT / folder).rglob("*.py"))


def test_no_old_name_is_left_as_an_identifier() -> None:
    left: list[str] = []
    for folder in EVERYWHERE:
        for path in sources_of(folder):
            place = path.relative_to(ROOT).as_posix()
            forbidden = (
                name
                for names, folders in OLD_NAMES
                if any(place.startswith(f"{wrong}/") for wrong in folders)
                for name in names
                if not any(place.startswith(ok) and name == other for ok, other in OF_LIBRARIES)
            )
            left += old_names_in(path, forbidden)
    assert not left, "\n".join(left)


@pytest.mark.parametrize(
    "line",
    [
        "class House: ...",
        "def f(House): ...",
        "x = y.House",
        "f(House=1)",
        "from a.House import b",
        "import a as House",
        "async def _House(): ...",
    ],
)
def test_each_form_of_an_identifier_is_seen(line: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(line, encoding="utf-8")
    assert "House" in {name.lstrip("_") for _, name in names_in(path)}
