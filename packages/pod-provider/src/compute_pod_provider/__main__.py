"""The command line of `compute-pod-provider`: run, `check-config`, `--version`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from compute_operator_kit.process.command_line import Program, run_program
from compute_pod_provider.apply import HOME
from compute_pod_provider.process import COMPONENT, run
from compute_pod_provider.settings import PodProviderSettings

DISTRIBUTION: Final = "datum-compute-pod-provider"
PROGRAM: Final = Program(COMPONENT, DISTRIBUTION, HOME, PodProviderSettings, run)


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Runs the provider or checks its configuration; gives the exit code."""
    return run_program(PROGRAM, arguments, environ)


if __name__ == "__main__":
    sys.exit(main())
