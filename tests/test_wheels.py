"""The libraries as others use them: typed examples, contents of a wheel, names that stay."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from compute_api_types.crd import SHORT_NAMES
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import object_at, string_at, strings_at
from tools.wheels import (
    WITH_EXAMPLES,
    WheelError,
    check_contents,
    compare_with_release,
    examples,
    find_last_release,
)
from tools.workspace import ROOT, Package

# Of the kinds that every Kubernetes serves (`kubectl api-resources`).
OF_KUBERNETES = frozenset(
    (
        *("cj", "cm", "cr", "crd", "crds", "cs", "csr", "deploy", "ds", "ep", "ev", "hpa", "ing"),
        *("limits", "netpol", "no", "ns", "pc", "pdb", "po", "pv", "pvc", "quota", "rc", "rs"),
        *("sa", "sc", "sts", "svc"),
    )
)
# Of Karmada's kinds, those we have no definition of included.
OF_KARMADA = frozenset({"cop", "cpp", "crb", "fhpa", "mcs", "op", "pp", "rb", "ric", "wk", "wr"})


@pytest.mark.parametrize("folder", WITH_EXAMPLES)
def test_examples_of_a_readme_pass_mypy_strict(folder: str, tmp_path: Path) -> None:
    found = examples(Package(folder))
    assert found
    for number, example in enumerate(found):
        (tmp_path / f"example_{number}.py").write_text(example, "utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "."],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout


def commit(folder: Path, text: str, *tags: str) -> None:
    module = folder / "packages/api-types/src/compute_api_types/__init__.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(text)
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(folder))
    for command in (["init", "--quiet"], ["add", "-A"], ["commit", "--quiet", "--message", "x"]):
        subprocess.run([*git, *command], check=True)
    for tag in tags:
        subprocess.run([*git, "tag", tag], check=True)


def test_a_broken_public_name_is_found_against_the_newest_release(tmp_path: Path) -> None:
    package = Package("api-types")
    commit(tmp_path, "def read(a: int) -> int: return a\n", "quota-client/v9.0.0")
    assert find_last_release(package, tmp_path) is None
    assert "no release yet" in compare_with_release(package, tmp_path)
    commit(tmp_path, "def read(b: int) -> int: return b\n", "api-types/v0.9.0")
    commit(
        tmp_path,
        "def read(b: int) -> int: return b\ndef more() -> None: ...\n",
        "api-types/v0.10.0",
    )
    assert find_last_release(package, tmp_path) == "api-types/v0.10.0"
    assert "v0.10.0" in compare_with_release(package, tmp_path)
    commit(tmp_path, "def read(b: int) -> int: return b\n")
    with pytest.raises(WheelError, match="more"):
        compare_with_release(package, tmp_path)


def make_archives(folder: Path, *, wheel: tuple[str, ...], sdist: tuple[str, ...]) -> Path:
    path = folder / "datum_compute_api_types-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in wheel:
            archive.writestr(name, "")
    with tarfile.open(folder / "datum_compute_api_types-1.tar.gz", "w") as archive:
        for name in sdist:
            archive.addfile(tarfile.TarInfo(f"datum_compute_api_types-1/{name}"))
    return path


TYPED = "compute_api_types/py.typed"
LICENSE = "datum_compute_api_types-1.dist-info/licenses/LICENSE"


@pytest.mark.parametrize(
    ("wheel", "sdist", "missing"),
    [
        ((TYPED,), ("LICENSE",), "the wheel has no LICENSE"),
        ((LICENSE,), ("LICENSE",), "the wheel has no py.typed"),
        ((TYPED, LICENSE), ("src/LICENSE",), "the sdist has no LICENSE"),
    ],
)
def test_a_wheel_without_licence_or_types_is_refused(
    tmp_path: Path, wheel: tuple[str, ...], sdist: tuple[str, ...], missing: str
) -> None:
    built = make_archives(tmp_path, wheel=wheel, sdist=sdist)
    with pytest.raises(WheelError, match=missing):
        check_contents(Package("api-types"), built)


def test_a_whole_wheel_is_accepted(tmp_path: Path) -> None:
    built = make_archives(tmp_path, wheel=(TYPED, LICENSE), sdist=("LICENSE",))
    check_contents(Package("api-types"), built)


def test_our_short_names_are_those_of_no_kind_beside_us() -> None:
    taken = {*OF_KUBERNETES, *OF_KARMADA}
    for document in load_crds():
        names = object_at(document, "spec", "names")
        taken |= {*strings_at(names, "shortNames"), string_at(names, "plural")}
        taken.add(string_at(names, "singular"))
    recorded = ROOT / "packages/sim-planes/tests/observed/milo-crds.json"
    taken |= set(re.findall(r'"(?:plural|singular)": "(\w+)"', recorded.read_text("utf-8")))
    assert not taken & set(SHORT_NAMES.values())
    for path in (ROOT / "deploy/crds").glob("compute*.yaml"):
        names = yaml.safe_load(path.read_text("utf-8"))["spec"]["names"]
        assert names["shortNames"] == [SHORT_NAMES[names["kind"]]]
        assert names["categories"] == ["compute"]
