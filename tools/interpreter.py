"""Writes the hub's status interpreter: rank table from `api-types`, manifest from the scripts.

The Lua files in `deploy/hub/interpreter` are the source; only the lines between the two `ranks`
marks are ours. The ResourceInterpreterCustomization beside them carries the scripts as text.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Final

import yaml

from compute_api_types.conditions import RANKS
from tools.workspace import ROOT

FOLDER: Final = ROOT / "deploy" / "hub" / "interpreter"
MARKS: Final = re.compile(r"(?<=-- ranks: begin)([^\n]*\n).*?(?=-- ranks: end)", re.DOTALL)


def rank_table() -> str:
    ordered = sorted(RANKS.items(), key=lambda entry: (-entry[1], entry[0]))
    lines = (f"  {reason} = {rank},\n" for reason, rank in ordered)
    return f"local RANKS = {{\n{''.join(lines)}}}\n"


def aggregation_script() -> str:
    written = (FOLDER / "aggregate_status.lua").read_text("utf-8")
    return MARKS.sub(lambda found: found.group(1) + rank_table(), written, count=1)


class BlockText(str):
    """Text that YAML shows as it is, line by line."""

    __slots__ = ()


class BlockDumper(yaml.SafeDumper):
    """Writes scripts as block text, so that the manifest can be read and compared."""


def _block(dumper: yaml.SafeDumper, text: BlockText) -> yaml.ScalarNode:
    # The stub leaves `value` without a type.
    return dumper.represent_scalar(  # pyright: ignore[reportUnknownMemberType]
        "tag:yaml.org,2002:str", str(text), style="|"
    )


BlockDumper.add_representer(BlockText, _block)


def customization(aggregation: str, health: str, retention: str, dependencies: str) -> str:
    document = {
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "workloaddeployment"},
        "spec": {
            "target": {
                "apiVersion": "compute.datumapis.com/v1alpha",
                "kind": "WorkloadDeployment",
            },
            "customizations": {
                "dependencyInterpretation": {"luaScript": BlockText(dependencies)},
                "healthInterpretation": {"luaScript": BlockText(health)},
                "retention": {"luaScript": BlockText(retention)},
                "statusAggregation": {"luaScript": BlockText(aggregation)},
            },
        },
    }
    return yaml.dump(document, Dumper=BlockDumper, sort_keys=False)


def wanted_files() -> dict[Path, str]:
    aggregation = aggregation_script()
    health = (FOLDER / "interpret_health.lua").read_text("utf-8")
    retention = (FOLDER / "retain.lua").read_text("utf-8")
    dependencies = (FOLDER / "dependencies.lua").read_text("utf-8")
    scripts = customization(aggregation, health, retention, dependencies)
    return {
        FOLDER / "aggregate_status.lua": aggregation,
        FOLDER / "workloaddeployment.yaml": scripts,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the hub's status interpreter.")
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    check: bool = parser.parse_args().check
    stale = [
        path
        for path, wanted in wanted_files().items()
        if not path.exists() or path.read_text("utf-8") != wanted
    ]
    for path in stale:
        if check:
            print(f"interpreter: {path.relative_to(ROOT)} is out of date; run `./dev generate`")
        else:
            path.write_text(wanted_files()[path], "utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
