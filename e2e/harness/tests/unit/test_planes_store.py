from __future__ import annotations

import threading
from pathlib import Path

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.programs.binaries import NODES, PLANES
from e2e.harness.programs.store import Store, derive_cache_folder


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"XDG_CACHE_HOME": "/c"}, Path("/c/datum-compute/planes")),
        ({"XDG_CACHE_HOME": ""}, Path("/home/u/.cache/datum-compute/planes")),
        ({"XDG_CACHE_HOME": "relative"}, Path("/home/u/.cache/datum-compute/planes")),
        ({}, Path("/home/u/.cache/datum-compute/planes")),
    ],
)
def test_cache_folder_follows_xdg(chosen: dict[str, str], expected: Path) -> None:
    assert derive_cache_folder(chosen, Path("/home/u")) == expected


def test_program_counts_only_under_its_final_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    binary = PLANES[0]
    path = store.path_of(binary)
    path.parent.mkdir()
    (path.parent / f".part-{binary.name}").touch()
    assert store.missing([binary]) == [binary]
    path.touch()
    assert store.missing([binary]) == []


def test_parts_of_an_interrupted_build_are_removed_and_programs_stay(tmp_path: Path) -> None:
    store = Store(tmp_path)
    program = store.path_of(PLANES[0])
    program.parent.mkdir()
    program.touch()
    part = program.parent / ".part-kubelet"
    part.touch()
    store.remove_parts()
    assert program.exists()
    assert not part.exists()


def test_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(PlanesError, match="XDG_CACHE_HOME"):
        Store(in_the_way / "planes").prepare()


def test_programs_of_one_module_lie_in_one_folder(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folders = {store.path_of(b).parent for b in (*PLANES, *NODES) if b.module.name == "kubernetes"}
    assert len(folders) == 1


def test_second_build_waits_for_the_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    lines: list[str] = []
    waiting = threading.Event()
    order: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        waiting.set()

    def second() -> None:
        with store.locked(say):
            order.append("second")

    thread = threading.Thread(target=second)
    with store.locked(lines.append):
        thread.start()
        assert waiting.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert lines == ["another build is under way; waiting for it to end"]
