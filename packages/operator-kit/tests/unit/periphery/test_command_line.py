from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import pytest
from typing_extensions import override

from compute_operator_kit.config.settings import FederationSettings, Root
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


class ExampleSettings(Root):
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


def test_a_check_starts_and_prints_nothing(
    runs: Runs, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_program(runs.program, ["check-config", "--server-config", str(config)], {})

    assert code is ExitCode.CLEAN
    assert runs.settings == []
    assert capsys.readouterr().out == ""


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
