"""The start of the command: help of all commands needs nothing but Python's own modules."""

import subprocess
import sys

PROGRAM = """
import sys
from compute_kubectl.__main__ import main
main(["--help"])
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pydantic", "yaml", "ssl"}))
"""


def test_help_imports_no_library() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"
    assert "why a Workload does not run" in ended.stdout


def test_the_module_is_a_program() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "compute_kubectl"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "usage: kubectl compute" in ended.stdout
