from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.harness.errors import PlanesError
from e2e.harness.programs.binaries import (
    CHECKERS,
    ETCD,
    KARMADA,
    KUBERNETES,
    MODULES,
    NODES,
    PLANES,
    derive_flags,
    derive_key,
    parse_go_directive,
    parse_required_version,
)
from e2e.harness.programs.store import ModuleFiles


def test_version_is_read_from_a_block_and_from_a_single_line() -> None:
    block = "require (\n\texample.com/other v0.1.0\n\tk8s.io/kubernetes v1.35.4 // indirect\n)\n"
    assert parse_required_version(block, "k8s.io/kubernetes") == "v1.35.4"
    assert parse_required_version("require a.b/c/v3 v3.6.16\n", "a.b/c/v3") == "v3.6.16"


def test_module_that_is_not_required_is_named() -> None:
    with pytest.raises(PlanesError, match=r"k8s\.io/kubernetes is not required"):
        parse_required_version("require k8s.io/kubernetes-csi v1.0.0\n", "k8s.io/kubernetes")


def test_replace_line_is_not_taken_for_the_required_version() -> None:
    text = "require x.y/z v1.0.0\nreplace (\n\tx.y/zz => x.y/zz v9.0.0\n)\n"
    assert parse_required_version(text, "x.y/z") == "v1.0.0"


def test_kubernetes_carries_its_version_in_all_three_stamps() -> None:
    linker = derive_flags(KUBERNETES, "v1.35.4")[-1]
    assert "-X k8s.io/component-base/version.gitVersion=v1.35.4" in linker
    assert "-X k8s.io/component-base/version.gitMajor=1" in linker
    assert "-X k8s.io/component-base/version.gitMinor=35" in linker


def test_etcd_is_stripped_and_has_no_stamp() -> None:
    assert derive_flags(ETCD, "v3.6.16")[-1] == "-s -w"


@pytest.mark.parametrize(
    ("module", "version"), [(ETCD, "v3.6.16"), (KUBERNETES, "v1.35.4"), (KARMADA, "v1.18.2")]
)
def test_tool_module_pins_what_the_specification_names(module: object, version: str) -> None:
    files = {files.module: files for files in map(ModuleFiles.read, MODULES)}
    assert next(f.version for m, f in files.items() if m is module) == version


def test_every_program_is_a_tool_of_its_module_and_in_its_sums() -> None:
    for binary in (*PLANES, *NODES, *CHECKERS):
        files = ModuleFiles.read(binary.module)
        assert binary.package in files.go_mod, binary.name
        assert f"{binary.module.requires} {files.version} h1:" in files.go_sum, binary.name


def test_go_directive_is_read_as_numbers() -> None:
    assert parse_go_directive("module x\n\ngo 1.25.10\n") == (1, 25, 10)
    assert parse_go_directive("module x\n") == ()


@given(st.lists(st.binary(), min_size=1), st.lists(st.text()), st.text())
def test_key_is_the_same_for_the_same_input(
    files: list[bytes], flags: list[str], platform: str
) -> None:
    assert derive_key(files, flags, platform) == derive_key(list(files), tuple(flags), platform)


@pytest.mark.parametrize(
    "other",
    [
        derive_key([b"go.mod", b"sum"], ["-s"], "Linux-x86_64"),
        derive_key([b"go.mo", b"dsums"], ["-s"], "Linux-x86_64"),
        derive_key([b"go.mod", b"sums"], ["-s", "-w"], "Linux-x86_64"),
        derive_key([b"go.mod", b"sums"], ["-s"], "Linux-aarch64"),
    ],
)
def test_key_changes_with_sums_flags_and_platform(other: str) -> None:
    assert other != derive_key([b"go.mod", b"sums"], ["-s"], "Linux-x86_64")
