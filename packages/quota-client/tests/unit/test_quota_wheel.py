"""The wheel, built and used in an environment that has what it declares and no more of ours."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2]
SIBLING = PACKAGE.parent / "kubeconfig"
# Claims, waits and releases: not only imports.
USES_IT = """
import asyncio, importlib.util, sys
from compute_quota_client import Claim, Granted, Pending, QuotaClient, Released, project_ref
from compute_quota_client.testing import GIB, FakeQuota, a_claim

for name in ("sniffio", "kopf", "compute_api_types", "compute_operator_kit", "pytest"):
    assert importlib.util.find_spec(name) is None, name

async def main():
    fake = FakeQuota()
    fake.add_project("acme")
    for kind in a_claim().requests:
        fake.register(kind)
    fake.grant("acme", dict(a_claim().requests))
    async with fake.client() as quota:
        acme = quota.project("acme")
        assert isinstance(await acme.claim(a_claim()), Pending)
        fake.evaluate()
        verdict = await acme.claim(a_claim())
        assert isinstance(verdict, Granted)
        released = await acme.release("default", a_claim().name, uid=verdict.found.uid)
        assert isinstance(released, Released)

asyncio.run(main())
assert "yaml" not in sys.modules
QuotaClient.from_kubeconfig(sys.argv[1])
print("it works")
"""
KUBECONFIG = """
{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
 "clusters": [{"name": "x", "cluster": {"server": "https://milo.example.com"}}],
 "users": [{"name": "x", "user": {"token": "t"}}]}
"""


def dependencies_of(*roots: str) -> set[str]:
    """The installed distributions that these need, without their extras."""
    needed: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            # Needed on another system or by another Python.
            continue
        needed.add(name)
        waiting += [_name_of(need) for need in needs if "extra ==" not in need]
    return needed


def _name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def link_distribution(name: str, site: Path) -> None:
    """Puts an installed distribution into another environment, file by file."""
    installed = Path(sysconfig.get_path("purelib"))
    for file in metadata.distribution(name).files or []:
        source = Path(str(file.locate()))
        if source.is_relative_to(installed) and source.is_file() and source.suffix != ".pth":
            target = site / source.relative_to(installed)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(PACKAGE, tmp_path_factory.mktemp("wheel"))


def build_wheel(package: Path, folder: Path) -> Path:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv, which builds the wheel, is not on PATH")
    built = subprocess.run(
        [uv, "build", "--wheel", "--out-dir", str(folder), str(package)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
    )
    assert built.returncode == 0, built.stderr
    (built_wheel,) = folder.glob("*.whl")
    return built_wheel


def test_the_wheel_is_typed_and_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "compute_quota_client/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "compute_quota_client",
        "datum_compute_quota_client",
    }
    assert not [name for name in names if "test_" in name or name.endswith(".json")]


def test_the_wheel_declares_its_dependencies(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    lines = archive.read(name).decode().splitlines()
    needs = [line.removeprefix("Requires-Dist: ") for line in lines if "Requires-Dist" in line]
    always = {need.split("<")[0].split(">")[0] for need in needs if "extra ==" not in need}
    assert always == {"datum-compute-kubeconfig", "httpx", "pydantic"}


@pytest.mark.spec("Q-01")
def test_the_wheel_works_where_only_what_it_declares_is(wheel: Path, tmp_path: Path) -> None:
    uv = shutil.which("uv")
    assert uv is not None
    sibling = build_wheel(SIBLING, tmp_path / "sibling")
    environment = tmp_path / "empty"
    quiet = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    subprocess.run(
        [uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True, env=quiet
    )
    python = environment / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = environment / "lib" / version / "site-packages"
    # From the environment of the test, not from an index: a unit test has no network.
    for name in dependencies_of("httpx", "pydantic", "pyyaml"):
        link_distribution(name, site)
    subprocess.run(
        [
            *(uv, "pip", "install", "--quiet", "--offline", "--no-deps"),
            *("--python", str(python), str(wheel), str(sibling)),
        ],
        check=True,
        env=quiet,
    )
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    used = subprocess.run(
        [str(python), "-I", "-W", "error", "-c", USES_IT, str(kubeconfig)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert used.stdout == "it works\n", used.stderr
