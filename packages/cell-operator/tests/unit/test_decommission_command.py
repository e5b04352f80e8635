"""The arguments of `compute-cell-operator decommission`."""

from __future__ import annotations

from pathlib import Path

import pytest

from compute_cell_operator.__main__ import main
from compute_cell_operator.decommission.command import Command, parse_command

GIVEN = ("--cell", "dfw-1", "--hub-kubeconfig", "/hub")


def test_the_arguments_say_what_is_asked_for() -> None:
    found = parse_command(
        "compute-cell-operator",
        [*GIVEN, "--quota-kubeconfig", "/quota", "--project", "a", "--project", "b", "--execute"],
    )
    assert found == Command("dfw-1", Path("/hub"), Path("/quota"), ("a", "b"), is_executed=True)


def test_nothing_is_executed_unless_it_is_asked_for() -> None:
    found = parse_command("compute-cell-operator", [*GIVEN, "--no-claims"])
    assert found == Command("dfw-1", Path("/hub"), None)


@pytest.mark.spec("C-97")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--hub-kubeconfig", "/hub", "--no-claims"], "--cell"),
        (["--cell", "dfw-1", "--no-claims"], "--hub-kubeconfig"),
        ([*GIVEN], "--quota-kubeconfig"),
        ([*GIVEN, "--no-claims", "--quota-kubeconfig", "/q"], "not allowed with"),
        (["--cell", "DFW", "--hub-kubeconfig", "/hub", "--no-claims"], "is no DNS label"),
        (["--cell", "", "--hub-kubeconfig", "/hub", "--no-claims"], "is no DNS label"),
        ([*GIVEN, "--no-claims", "--project", "org/proj"], "is no DNS label"),
        ([*GIVEN, "--no-claims", "--exec"], "unrecognized arguments"),
    ],
)
def test_wrong_usage_ends_with_exit_code_2_and_says_why(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["decommission", *arguments], {})
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.spec("C-97")
def test_a_refused_kubeconfig_ends_with_exit_code_2_and_names_the_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = tmp_path / "hub"
    hub.write_text("kind: Config\nclusters: []\n", "utf-8")
    arguments = ["--cell", "dfw-1", "--hub-kubeconfig", str(hub), "--no-claims"]
    assert main(["decommission", *arguments], {}) == 2
    assert capsys.readouterr().err


@pytest.mark.spec("C-97")
def test_a_kubeconfig_that_is_not_there_ends_with_exit_code_2_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "nowhere"
    arguments = ["--cell", "dfw-1", "--hub-kubeconfig", str(missing), "--no-claims"]
    assert main(["decommission", *arguments], {}) == 2
    assert str(missing) in capsys.readouterr().err
