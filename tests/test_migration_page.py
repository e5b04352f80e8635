"""The page about the switch from the Go operators shows what can be applied, and the way back."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from compute_cell_operator.settings import CellSettings
from compute_kubeconfig.strict_yaml import parse_document
from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.config.loader import validate_settings
from e2e.demo.howtos import SWITCH
from e2e.harness.deploy.manifests import DEPLOY
from e2e.harness.stack.kubectl import NO_KUBECTL, find_kubectl, kustomize
from e2e.world.components import parse_manifests
from e2e.world.objects import name_of, text_at
from tools.doc_blocks import Kind, find_shown
from tools.workspace import ROOT

PAGE = (ROOT / SWITCH).read_text("utf-8")
SHOWN = find_shown(SWITCH, PAGE, has_inline=True)
PREPARED = next(one for one in SHOWN if "requireCellLabel: false" in one.text)


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """The folder of a platform team that followed the page up to the switch."""
    (tmp_path / "deploy").symlink_to(DEPLOY)
    for one in SHOWN:
        if one.kind is Kind.FILE:
            (tmp_path / one.note).parent.mkdir(parents=True)
            (tmp_path / one.note).write_text(one.text, "utf-8")
    lines = [line for line in PREPARED.text.splitlines() if "check-config" not in line]
    subprocess.run(["bash", "-ec", "\n".join(lines)], cwd=tmp_path, check=True)
    return tmp_path / "my" / "switch"


@pytest.mark.spec("OU-06")
def test_configurations_of_the_switch_are_valid_and_let_unlabelled_copies_pass(
    prepared: Path,
) -> None:
    written = parse_document((prepared / "management/config.yaml").read_text("utf-8"))
    management = validate_settings(ManagementSettings, written)
    assert not management.projection.require_cell_label
    cell = parse_document((prepared / "dfw-1/config.yaml").read_text("utf-8"))
    assert validate_settings(CellSettings, cell).cell.name == "dfw-1"


@pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)
@pytest.mark.spec("OU-06")
@pytest.mark.parametrize(
    ("folder", "config"),
    [("management", "compute-management-config"), ("dfw-1", "compute-cell-config")],
)
def test_overlays_of_the_switch_carry_the_configuration(
    prepared: Path, folder: str, config: str
) -> None:
    documents = parse_manifests(kustomize(prepared / folder))
    (found,) = [one for one in documents if name_of(one) == config]
    written = (prepared / folder / "config.yaml").read_text("utf-8")
    assert text_at(found, "data", "config.yaml") == written


@pytest.mark.spec("OU-06")
def test_page_tells_the_way_back_with_its_cost_and_runs_all_that_is_ours() -> None:
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert headings == ["Before", "The switch", "After", "Back"]
    back = PAGE.partition("## Back")[2]
    for word in ("recreated", "given back", "garbage collector"):
        assert word in back
    (left_out,) = [one for one in SHOWN if one.kind is Kind.NOT_RUN]
    assert "compute/config" in left_out.text  # theirs alone
    assert not [one for one in SHOWN if one.kind is Kind.UNMARKED]
