"""Writes the CRDs of `deploy/crds` from the models of api-types.

The package makes plain documents and needs no YAML; this program is where they become files. The
same models give the same bytes: sorted keys, block style, LF, one document per file, no time and no
version of a generator (`docs/spec/api.md` 16).
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Final

import yaml

from compute_api_types.crd import derive_crds
from compute_api_types.wire import JsonObject
from tools.workspace import ROOT

FOLDER: Final = ROOT / "deploy" / "crds"
# A difference is summarised, not printed in full: the file itself is one command away.
SHOWN_LINES: Final = 20


def to_yaml(document: JsonObject) -> str:
    # No folding: where a long line breaks is the library's taste and may change with it.
    return yaml.safe_dump(
        document,
        sort_keys=True,
        default_flow_style=False,
        allow_unicode=True,
        width=sys.maxsize,
        line_break="\n",
    )


def wanted_files(folder: Path = FOLDER) -> dict[Path, str]:
    files = {folder / _file_name(crd): to_yaml(crd) for crd in derive_crds()}
    kustomization: JsonObject = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [*sorted(path.name for path in files)],
    }
    return {**files, folder / "kustomization.yaml": to_yaml(kustomization)}


def _file_name(crd: JsonObject) -> str:
    match crd:
        case {"spec": {"group": str(group), "names": {"plural": str(plural)}}}:
            return f"{group}_{plural}.yaml"
        case _:
            raise ValueError("naming a CRD's file: the document has no group and plural")


def differences(folder: Path = FOLDER) -> list[str]:
    """What is out of date, as lines to print; empty when every byte is as wanted."""
    lines: list[str] = []
    wanted = wanted_files(folder)
    for path, text in wanted.items():
        found = path.read_bytes().decode("utf-8") if path.exists() else ""
        if found != text:
            lines += [f"crds: {path.name} is out of date; run `./dev crds`"]
            lines += _summary(found, text)
    strays = sorted(path for path in folder.glob("*.yaml") if path not in wanted)
    return lines + [f"crds: {path.name} belongs to no model" for path in strays]


def write(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in wanted_files(folder).items():
        path.write_text(text, "utf-8", newline="\n")


def _summary(found: str, wanted: str) -> list[str]:
    changed = [
        line
        for line in difflib.unified_diff(found.splitlines(), wanted.splitlines(), n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    more = len(changed) - SHOWN_LINES
    return changed[:SHOWN_LINES] + ([f"… and {more} more lines"] if more > 0 else [])


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the CRDs from the models.")
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    check: bool = parser.parse_args().check
    if not check:
        write()
        return 0
    stale = differences()
    for line in stale:
        print(line)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
