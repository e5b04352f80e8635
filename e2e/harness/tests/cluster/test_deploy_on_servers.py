"""Real API servers accept the shipped manifests without a warning and evaluate pods as we do.

Whether policies refuse what they must is tested in the contract tests of sim-planes, which run on a
real server too.
"""

from __future__ import annotations

import copy

import pytest

from compute_api_types.wire import JsonObject
from e2e.deploy_checks.pod_faults import CONTAINER_FAULTS, INHERITED_FAULTS, POD_FAULTS, PodFault
from e2e.deploy_checks.pod_security import find_problems
from e2e.harness.access.client import ApiError, PlaneClient
from e2e.harness.deploy.manifests import load_overlay, rendered_file
from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.installation import Installation
from e2e.world.components import load_component
from e2e.world.objects import name_of, object_at, objects_at, text_at

STRICTLY = ("--server-side", "--dry-run=server", "--validate=strict", "--warnings-as-errors")
NAMESPACE = "restricted-pods"
# Contradictory fields are refused by validation, before Pod Security is evaluated.
CONTRADICTIONS = {"is privileged", "is a process of its host", "unmasks /proc"}


def a_namespace(name: str) -> JsonObject:
    """A namespace with the labels of ours."""
    (ours,) = [one for one in load_component("home") if text_at(one, "kind") == "Namespace"]
    renamed = copy.deepcopy(ours)
    object_at(renamed, "metadata")["name"] = name
    return renamed


@pytest.mark.parametrize(
    ("plane", "overlay"),
    [
        ("root", "crds"),
        pytest.param("root", "milo", marks=pytest.mark.spec("OU-01")),
        pytest.param("root", "milo/cells/example", marks=pytest.mark.spec("OU-01")),
        ("hub", "crds"),
        ("hub", "hub"),
        ("hub", "hub/cells/example"),
        ("dfw-1", "crds"),
        ("dfw-1", "cell"),
        ("ord-1", "management"),
        ("ord-1", "single-cluster"),
    ],
)
async def test_overlay_is_taken_strictly_and_without_a_warning(
    real_planes: RealPlanes, installation: Installation, plane: str, overlay: str
) -> None:
    wanted = {text_at(one, "metadata", "namespace") for one in load_overlay(overlay)} - {""}
    async with real_planes.plane(plane).client() as client:
        # Milo's own namespace keeps its labels.
        missing = [one for one in wanted if not await client.find(f"/api/v1/namespaces/{one}")]
    await installation.apply(plane, [a_namespace(name) for name in sorted(missing)])
    context, file = f"--context={plane}", str(rendered_file(overlay))
    output = await real_planes.kubectl(context, "apply", *STRICTLY, "-f", file)
    assert len(output.splitlines()) == len(load_overlay(overlay))


def a_pod(name: str, spec: JsonObject) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def shipped_pods() -> dict[str, JsonObject]:
    return {
        f"{overlay}-{name_of(one)}": object_at(one, "spec", "template", "spec")
        for overlay in ("management", "cell", "pod-provider", "single-cluster")
        for one in load_overlay(overlay)
        if text_at(one, "kind") == "Deployment"
    }


def a_bare_pod() -> JsonObject:
    """One of our pods without volumes, so that a fault in volumes is its only one."""
    spec = copy.deepcopy(shipped_pods()["cell-compute-cell-operator"])
    spec["volumes"] = []
    for container in objects_at(spec, "containers"):
        container["volumeMounts"] = []
    return spec


async def explain_refusal(client: PlaneClient, name: str, spec: JsonObject) -> str:
    """Why a pod is refused, by Pod Security or by validation; empty if it is accepted."""
    try:
        await client.create(a_pod(name, spec))
    except ApiError as refused:
        is_standard = refused.code == 403 and "violates PodSecurity" in str(refused)
        if is_standard or refused.code == 422:
            return "restricted" if is_standard else "invalid"
        raise
    return ""


@pytest.mark.spec("S4")
async def test_pods_that_ship_are_admitted_where_restricted_is_enforced(
    real_planes: RealPlanes, installation: Installation
) -> None:
    await installation.apply("dfw-1", [a_namespace(NAMESPACE)])
    async with real_planes.plane("dfw-1").client() as client:
        refused = {
            name: await explain_refusal(client, name, spec) for name, spec in shipped_pods().items()
        }
    assert len(refused) == 6
    assert not any(refused.values()), refused


def expected(fault: PodFault) -> str:
    if fault.problem in CONTRADICTIONS:
        return "invalid"
    return "restricted" if fault.is_standard else ""


async def test_evaluator_and_server_judge_alike(
    real_planes: RealPlanes, installation: Installation
) -> None:
    whole = a_bare_pod()
    assert find_problems(whole) == []
    cases = [
        *((fault, fault.in_pod(whole)) for fault in (*POD_FAULTS, *INHERITED_FAULTS)),
        *((fault, fault.in_container(whole, "containers")) for fault in CONTAINER_FAULTS),
    ]
    await installation.apply("dfw-1", [a_namespace(NAMESPACE)])
    async with real_planes.plane("dfw-1").client() as client:
        decided = [
            (str(fault), await explain_refusal(client, f"case-{number}", spec))
            for number, (fault, spec) in enumerate(cases)
        ]
    assert decided == [(str(fault), expected(fault)) for fault, _ in cases]
