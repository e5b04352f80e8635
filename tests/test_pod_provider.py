"""What several packages owe each other about the pod provider."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_api_types.quantity import MEBI, MILLI, parse_quantity, round_up
from compute_api_types.sizes import Size
from compute_api_types.v1alpha.instance import InstanceSpec
from compute_api_types.v1alpha.runtime import SandboxRuntime
from compute_cell_operator.quota.size import derive_size
from compute_operator_kit.core.json import JsonObject
from compute_pod_provider.options import PodOptions
from compute_pod_provider.render.limits import divide_size
from tools.workspace import ROOT

PACKAGE: Final = ROOT / "packages" / "pod-provider" / "src" / "compute_pod_provider"
TYPE: Final = "datumcloud/d1-standard-2"
LIMITS: Final = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["100m", "0.2", "333m"]),
        "memory": st.sampled_from(["64Mi", "0.5Gi", "700Mi"]),
    },
)


def imports_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    names = {
        alias.name for one in ast.walk(tree) if isinstance(one, ast.Import) for alias in one.names
    }
    return names | {
        one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) and one.module
    }


@pytest.mark.spec("PP-36")
def test_kopf_is_known_to_the_handlers_alone() -> None:
    knows = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.split(".")[0] == "kopf" for name in imports_of(path))
    }
    assert knows == {"handlers.py"}


@pytest.mark.spec("PP-14")
@given(limits=st.lists(LIMITS, min_size=1, max_size=3))
def test_what_is_claimed_is_what_is_given(limits: list[dict[str, str]]) -> None:
    document: JsonObject = {
        "runtime": {
            "resources": {"instanceType": TYPE},
            "sandbox": {
                "containers": [
                    {"name": f"c{place}", "image": "i", "resources": {"limits": dict(one)}}
                    for place, one in enumerate(limits)
                ]
            },
        },
        "networkInterfaces": [{"network": {"name": "n"}}],
    }
    claimed = derive_size(document)
    assert isinstance(claimed, Size)
    spec = InstanceSpec.read(document)
    sandbox = spec.runtime.sandbox
    assert isinstance(sandbox, SandboxRuntime)
    size = PodOptions().sizes[TYPE]
    given_limits = divide_size(size, spec.runtime.resources, tuple(sandbox.containers))
    if given_limits is None:  # more than the type has: claimed, and not given
        is_whole = claimed.millicores >= size.millicores or claimed.mebibytes >= size.mebibytes
        assert is_whole
        return
    cpu = sum((parse_quantity(one["cpu"]) for one in given_limits), Fraction(0))
    memory = sum((parse_quantity(one["memory"]) for one in given_limits), Fraction(0))
    assert Size(round_up(cpu, MILLI), round_up(memory, MEBI)) == claimed
