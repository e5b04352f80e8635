"""The architecture is a linted fact: each contract is broken on a copy and must be seen to fail."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TREES = ("packages", "bench", "e2e", "tools", "pyproject.toml")

# Contract id → the file that breaks it, and how.
BREAKERS = {
    "layers": ("packages/api-types/src/compute_api_types/names.py", "compute_operator_kit"),
    "kit-rooms": (
        "packages/operator-kit/src/compute_operator_kit/core/keys.py",
        "compute_operator_kit.cache.store",
    ),
    "sim-rooms": (
        "packages/sim-planes/src/compute_sim_planes/json_types.py",
        "compute_sim_planes.milo.router",
    ),
    "sim-api-server-rooms": (
        "packages/sim-planes/src/compute_sim_planes/api_server/schema/formats.py",
        "compute_sim_planes.api_server.plane",
    ),
    "sim-karmada-rooms": (
        "packages/sim-planes/src/compute_sim_planes/karmada/kinds.py",
        "compute_sim_planes.karmada.simulation",
    ),
    "sim-milo-rooms": (
        "packages/sim-planes/src/compute_sim_planes/milo/kinds.py",
        "compute_sim_planes.milo.router",
    ),
    "e2e-rooms": ("e2e/world/kinds.py", "e2e.backends.sim.planes"),
    "e2e-harness-rooms": ("e2e/harness/access/client.py", "e2e.harness.stack.stack"),
    "e2e-backends-rooms": ("e2e/backends/real/metrics.py", "e2e.backends.kind.clusters"),
    "quota-alone": (
        "packages/quota-client/src/compute_quota_client/_models.py",
        "compute_api_types",
    ),
    "simulation-apart": (
        "packages/sim-planes/src/compute_sim_planes/faults/injection.py",
        "compute_operator_kit",
    ),
    "simulation-stays-home": ("tools/workspace.py", "compute_sim_planes"),
    "types-are-pure": ("packages/api-types/src/compute_api_types/conditions.py", "time"),
    "decisions-are-pure": (
        "packages/operator-kit/src/compute_operator_kit/intents/compare.py",
        "asyncio",
    ),
    "cell-rooms": (
        "packages/cell-operator/src/compute_cell_operator/network/observe.py",
        "compute_cell_operator.deployment.slots",
    ),
    "management-rooms": (
        "packages/management-operator/src/compute_management_operator/hub/identity.py",
        "compute_management_operator.workload.plan",
    ),
    "quota-behind-its-gate": (
        "packages/cell-operator/src/compute_cell_operator/deployment/observe.py",
        "compute_quota_client",
    ),
    "kubectl-alone": (
        "packages/kubectl-compute/src/compute_kubectl/explain/chain.py",
        "compute_operator_kit",
    ),
    "kubectl-explains-purely": (
        "packages/kubectl-compute/src/compute_kubectl/explain/chain.py",
        "time",
    ),
    "kopf-in-two-rooms": ("packages/pod-provider/src/compute_pod_provider/provider.py", "kopf"),
    "provider-rooms": (
        "packages/pod-provider/src/compute_pod_provider/plan.py",
        "compute_pod_provider.apply",
    ),
}


def contracts() -> dict[str, str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return {c["id"]: c["name"] for c in settings["tool"]["importlinter"]["contracts"]}


@pytest.fixture(scope="module")
def copied_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    ignore = shutil.ignore_patterns("__pycache__", "tests", "*.egg-info")
    for name in TREES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


def lint(tree: Path, contract: str) -> subprocess.CompletedProcess[str]:
    sources = [str(path) for path in sorted(tree.glob("packages/*/src"))]
    program = str(Path(sys.executable).with_name("lint-imports"))
    return subprocess.run(
        [program, "--no-cache", "--contract", contract],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), *sources]), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_contract_has_a_way_to_break_it() -> None:
    assert contracts().keys() == BREAKERS.keys()


@pytest.mark.parametrize("contract", BREAKERS)
def test_a_broken_contract_is_noticed(copied_tree: Path, contract: str) -> None:
    path, forbidden = BREAKERS[contract]
    module = copied_tree / path
    before = module.read_text("utf-8")
    module.write_text(before + f"\nimport {forbidden}\n", "utf-8")
    try:
        linted = lint(copied_tree, contract)
    finally:
        module.write_text(before, "utf-8")

    assert linted.returncode == 1, linted.stdout + linted.stderr
    assert f"{contracts()[contract]} BROKEN" in linted.stdout
