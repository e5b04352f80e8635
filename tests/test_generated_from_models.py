"""CRDs and the reference of conditions are made from api-types, to the byte and both ways."""

import re
from pathlib import Path

import yaml

from compute_api_types import catalogue, reasons
from compute_api_types.crd import derive_crds
from tools import crds, reference_conditions


def test_files_are_the_same_every_time_and_say_what_the_models_say() -> None:
    files = crds.wanted_files()
    assert files == crds.wanted_files()
    parsed = [yaml.safe_load(text) for path, text in files.items() if "datumapis" in path.name]
    assert parsed == list(derive_crds())


def test_files_are_block_style_with_unix_line_ends_and_one_document_each() -> None:
    for text in crds.wanted_files().values():
        assert "\r" not in text
        assert "\n---" not in text
        assert text.endswith("\n")
        assert not re.search(r"^\s*\w+: [{[](?![}\]])", text, re.MULTILINE)


def test_files_are_named_after_group_and_plural_and_kustomize_lists_them() -> None:
    files = {path.name: text for path, text in crds.wanted_files().items()}
    assert sorted(files) == [
        "compute.datumapis.com_instances.yaml",
        "compute.datumapis.com_workloaddeployments.yaml",
        "compute.datumapis.com_workloads.yaml",
        "kustomization.yaml",
    ]
    assert yaml.safe_load(files["kustomization.yaml"])["resources"] == sorted(files)[:3]


def test_what_was_just_written_is_not_out_of_date(tmp_path: Path) -> None:
    crds.write(tmp_path / "crds")
    assert crds.differences(tmp_path / "crds") == []


def test_a_changed_byte_a_missing_file_and_a_stray_one_are_found(tmp_path: Path) -> None:
    crds.write(tmp_path)
    changed = tmp_path / "compute.datumapis.com_workloads.yaml"
    changed.write_text(changed.read_text("utf-8").replace("minItems: 1", "minItems: 2"), "utf-8")
    (tmp_path / "kustomization.yaml").unlink()
    (tmp_path / "compute.datumapis.com_gateways.yaml").write_text("{}", "utf-8")
    lines = crds.differences(tmp_path)
    assert "crds: compute.datumapis.com_workloads.yaml is out of date; run `./dev crds`" in lines
    assert any(line.startswith("-") and "minItems: 2" in line for line in lines)
    assert any(line.startswith("+") and "minItems: 1" in line for line in lines)
    assert "crds: kustomization.yaml is out of date; run `./dev crds`" in lines
    assert lines[-1] == "crds: compute.datumapis.com_gateways.yaml belongs to no model"


def test_line_ends_of_another_system_are_a_difference(tmp_path: Path) -> None:
    crds.write(tmp_path)
    page = tmp_path / "kustomization.yaml"
    page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    assert crds.differences(tmp_path)


def test_a_large_difference_is_summarised(tmp_path: Path) -> None:
    lines = crds.differences(tmp_path)
    assert len(lines) < 100
    assert any(re.fullmatch(r"… and \d+ more lines", line) for line in lines)


def test_every_reason_has_its_row_on_the_page_and_internal_ones_are_apart() -> None:
    page = reference_conditions.render()
    body, _, internal = page.partition("## Internal reasons")
    for word, meaning in reasons.MEANINGS.items():
        part = internal if meaning.internal else body
        assert f"| `{word}` | {meaning.means} |" in part
    assert not any(f"`{word}`" in body for word, each in reasons.MEANINGS.items() if each.internal)


def test_every_condition_type_and_event_target_is_on_the_page() -> None:
    page = reference_conditions.render()
    for row in catalogue.CONDITIONS:
        assert f"### {row.kind}: {row.type}\n" in page
    for events in catalogue.EVENTS:
        assert f"| {events.on} | Warning |" in page
