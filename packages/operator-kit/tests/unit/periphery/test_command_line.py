from __future__ import annotations

import argparse
import logging
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import pytest
from typing_extensions import override

from compute_operator_kit.config.loader import Verb
from compute_operator_kit.config.settings import FederatedRoot, FederationSettings
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.process.command_line import Program, run_program
from compute_operator_kit.process.lifecycle import ExitCode, Lifecycle
from compute_operator_kit.process.operator_process import ProcessInfo, setup_process

GOOD = """
apiVersion: apiserver.config.datumapis.com/v1alpha1
kind: ExampleOperator
federation: {mode: none}
metricsServer: {bindAddress: "0"}
"""


def _add_cell(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cell", required=True)


RETIRE = Verb("retire", "remove an example", _add_cell)


class ExampleSettings(FederatedRoot):
    KIND: ClassVar[str] = "ExampleOperator"

    federation: FederationSettings = FederationSettings()

    @property
    @override
    def hub(self) -> FederationSettings:
        return self.federation


class Runs:
    """Counts how often the program really ran, and with what."""

    def __init__(self) -> None:
        self.settings: list[ExampleSettings] = []
        self.infos: list[ProcessInfo] = []
        self.program = Program(
            "example",
            "datum-compute-operator-kit",
            PlaneName("@home"),
            ExampleSettings,
            self._run,
        )

    async def _run(
        self, settings: ExampleSettings, info: ProcessInfo, lifecycle: Lifecycle
    ) -> None:
        assert not lifecycle.is_stopping
        setup_process(settings)
        self.settings.append(settings)
        self.infos.append(info)


@pytest.fixture
def runs() -> Iterator[Runs]:
    """A run makes its log format the only one; the former one is restored."""
    root = logging.getLogger()
    handlers, level, raises = root.handlers[:], root.level, logging.raiseExceptions
    yield Runs()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raises


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(GOOD)
    return path


def test_a_program_runs_with_its_settings(runs: Runs, config: Path) -> None:
    code = run_program(runs.program, ["--server-config", str(config)], {"LOG_LEVEL": "debug"})

    assert code is ExitCode.CLEAN
    assert [settings.telemetry.log_level for settings in runs.settings] == ["debug"]
    (info,) = runs.infos
    assert (info.component, info.home) == ("example", "@home")
    assert info.version == version("datum-compute-operator-kit")
    assert info.environ == {"LOG_LEVEL": "debug"}


def test_the_version_is_that_of_the_distribution(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_program(runs.program, ["--version"], {})

    assert ended.value.code == 0
    assert capsys.readouterr().out == f"example {version('datum-compute-operator-kit')}\n"


def test_a_check_starts_nothing_and_states_what_the_file_enables(
    runs: Runs, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_program(runs.program, ["check-config", "--server-config", str(config)], {})

    assert code is ExitCode.CLEAN
    assert runs.settings == []
    assert capsys.readouterr().out.splitlines() == [
        f"{config}: valid, kind ExampleOperator",
        "  federation: none, no hub",
        "  leader election: on, Lease in the namespace of the pod",
        "  networking: auto",
        "  metrics: off",
        "  probes: HTTP on :8081",
        "  telemetry: no traces",
    ]


def test_a_check_shows_no_more_of_an_address_than_its_host(
    runs: Runs, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(GOOD + "telemetry: {otlpEndpoint: 'https://collector:4318/v1?key=abc'}\n")
    run_program(runs.program, ["check-config", "--server-config", str(config)], {})
    out = capsys.readouterr().out
    assert "telemetry: traces to collector:4318" in out
    assert "abc" not in out


COMPLETE = """
source "$1"; COMP_WORDS=(example $2); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_example; printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("check", ["check-config"]),
        ("check-config --server", ["--server-config"]),
        ("completion z", ["zsh"]),
        ("retire --ce", ["--cell"]),
        ("--log-level info --lead", ["--leader-elect", "--leader-elect-namespace"]),
    ],
)
def test_bash_completes_commands_flags_and_choices(
    runs: Runs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    offered: list[str],
) -> None:
    program = replace(runs.program, verbs=(RETIRE,))
    assert run_program(program, ["completion", "bash"], {}) is ExitCode.CLEAN
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "complete", str(script), typed],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == offered


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("zsh", "autoload -U +X bashcompinit && bashcompinit"),
        ("fish", "complete -c example -n __fish_use_subcommand -f -a check-config"),
        ("fish", "complete -c example -n '__fish_seen_subcommand_from retire' -l cell -r"),
    ],
)
def test_other_shells_have_a_script_of_their_own(
    runs: Runs, capsys: pytest.CaptureFixture[str], shell: str, line: str
) -> None:
    run_program(replace(runs.program, verbs=(RETIRE,)), ["completion", shell], {})
    assert line in capsys.readouterr().out.splitlines()


def test_help_lists_the_commands_of_the_operator(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    program = replace(runs.program, verbs=(RETIRE,))
    with pytest.raises(SystemExit):
        run_program(program, ["--help"], {})
    assert "retire              remove an example" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        run_program(program, ["--log-level", "debug", "retire", "--cell", "a"], {})
    assert ended.value.code == ExitCode.REFUSED
    assert "retire comes first" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [[], ["check-config"]])
def test_a_bad_configuration_ends_with_code_2_and_all_of_its_problems(
    runs: Runs, config: Path, capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    config.write_text(GOOD + "surprise: 1\nnetworking: maybe\n")

    code = run_program(runs.program, [*verb, "--server-config", str(config)], {})

    assert code is ExitCode.REFUSED
    assert runs.settings == []
    assert capsys.readouterr().err.splitlines() == [
        "networking: must be 'auto', 'on' or 'off'",
        "surprise: unknown key",
    ]


def test_a_missing_file_stops_the_start_but_not_the_check(
    runs: Runs, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(GOOD.replace("mode: none", "kubeconfigPath: /nowhere/kubeconfig"))
    argv = ["--server-config", str(config)]

    assert run_program(runs.program, ["check-config", *argv], {}) is ExitCode.CLEAN
    assert run_program(runs.program, argv, {}) is ExitCode.REFUSED
    assert "/nowhere/kubeconfig: cannot be read: No such file" in capsys.readouterr().err
