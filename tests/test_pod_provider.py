"""What several packages owe each other about the pod provider."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import pod_provider
from compute_api_types.quantity import MEBI, MILLI, parse_quantity, round_up
from compute_api_types.sizes import Size
from compute_api_types.v1alpha.instance import InstanceSpec
from compute_api_types.v1alpha.runtime import SandboxRuntime
from compute_cell_operator.quota.size import derive_size
from compute_operator_kit.core.json import JsonObject
from compute_pod_provider.instance_facts import read_instance
from compute_pod_provider.options import PodOptions
from compute_pod_provider.render import render
from compute_pod_provider.render.limits import divide_size
from compute_pod_provider.render.refusal import Refusal
from e2e.deploy_checks.pod_security import find_problems
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


# Rules of ours for operators that are no part of the standard, and do not hold for Instances.
STRICTER: Final = ("can write its root file system", "has an emptyDir without a size")


@pytest.mark.spec("PP-01")
def test_pods_of_instances_meet_the_level_restricted() -> None:
    """By the rules for Pods of the operators; a real server judges them in E-P12."""
    container: JsonObject = {
        "name": "web",
        "image": "registry.example.net/web:1",
        "ports": [{"name": "http", "port": 8080}],
        "volumeAttachments": [{"name": "words", "mountPath": "/words"}],
    }
    spec: JsonObject = {
        "runtime": {
            "resources": {"instanceType": TYPE},
            "sandbox": {"containers": [container, {**container, "name": "second"}]},
        },
        "networkInterfaces": [{"network": {"name": "n"}}],
        "volumes": [{"name": "words", "secret": {"secretName": "words"}}],
    }
    metadata: JsonObject = {"name": "web-0", "namespace": "default", "uid": "u"}
    rendered = render(read_instance({"metadata": metadata, "spec": spec}), PodOptions())
    assert not isinstance(rendered, Refusal)
    pod = rendered["spec"]
    assert isinstance(pod, dict)
    problems = [one for one in find_problems(pod) if not any(word in one for word in STRICTER)]
    assert problems == []
    pod["securityContext"] = {}
    assert find_problems(pod)


@pytest.mark.spec("PP-35")
def test_the_benchmark_asks_for_the_numbers_of_the_page() -> None:
    """`./dev bench pod_provider` fails where one of its limits does not hold."""
    page = (ROOT / "docs" / "spec" / "pod-provider.md").read_text("utf-8")
    table = page[page.index("| numbers, ") : page.index("## 9. ")]
    asked = [line.split("|")[2] for line in table.splitlines()[2:] if line.startswith("|")]
    numbers = sorted(float(one) for cell in asked for one in re.findall(r"≤ ([\d.]+)", cell))
    assert numbers == sorted(limit for limit in pod_provider.LIMITS.values() if limit)
    assert "0 writes" in table
    assert f"| numbers, {pod_provider.INSTANCES} Instances" in table
