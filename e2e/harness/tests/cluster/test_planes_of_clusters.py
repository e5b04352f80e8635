"""Clusters as planes of a stack, with a fake of kind instead of docker.

Milo is the stack's own; the home plane is a "cluster". All code from its address on is the code
used for kind clusters.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from compute_sim_planes.json_types import JsonObject
from e2e.backends.kind import fake_programs
from e2e.backends.kind.karmada import API_SERVER, derive_opened, open_to_stack
from e2e.backends.kind.kind_clusters import KindClusters
from e2e.harness.access.client import ApiError, Endpoint, PlaneClient
from e2e.harness.access.kubeconfig import Token
from e2e.harness.errors import PlanesError
from e2e.harness.node import process_lookup
from e2e.harness.planes.identities import Identity
from e2e.harness.planes.plane import RealPlane
from e2e.harness.planes.plane_manifests import a_namespace
from e2e.harness.planes.topology import PlaneSpec, Role, Topology, a_project
from e2e.harness.processes.ports import LOOPBACK
from e2e.harness.programs.binaries import PLANES
from e2e.harness.programs.build import find_programs
from e2e.harness.programs.store import Store
from e2e.harness.stack.stack import Options, RealPlanes
from e2e.harness.testing.helpers import run_outside
from e2e.world.objects import object_at, objects_at, text_at, texts_at

HOME = "home"
TOPOLOGY = Topology((PlaneSpec("root", Role.ROOT), a_project("p1"), PlaneSpec(HOME, Role.SINGLE)))
READER = Identity("reader")
SYSTEM, ACCOUNT = "compute-system", "compute-management-operator"
REVIEW: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The fake programs, first on the PATH."""
    folder, before = tmp_path_factory.mktemp("double"), os.environ["PATH"]
    os.environ["PATH"] = f"{fake_programs.write_programs(folder)}{os.pathsep}{before}"
    yield folder
    for cluster in fake_programs.run_fake(folder, ["kind", "get", "clusters"]).split():
        fake_programs.run_fake(folder, ["kind", "delete", "cluster", "--name", cluster])
    os.environ["PATH"] = before


@pytest.fixture(scope="module")
def announced() -> dict[str, str]:
    """The address of each plane for pods."""
    return {}


@pytest.fixture(scope="module")
def clusters(announced: dict[str, str], double: Path) -> KindClusters:
    async def note(plane: RealPlane, address: str, port: int) -> None:
        # Kubernetes accepts no loopback address here, and there are no pods to use it.
        announced[plane.name] = f"https://{address}:{port}"

    return KindClusters({}, address=LOOPBACK, announce=note, lock=double / "lock")


@pytest.fixture(scope="module")
def planes(double: Path, clusters: KindClusters) -> Iterator[RealPlanes]:
    stack = RealPlanes(TOPOLOGY, Options(clusters=clusters, issuer=HOME, identities=(READER,)))
    run_outside(stack.start())
    yield stack
    folder = stack.run_folder.path
    run_outside(stack.stop())
    assert not folder.exists()
    assert fake_programs.run_fake(double, ["kind", "get", "clusters"]) == ""


@pytest.fixture
async def home(planes: RealPlanes) -> AsyncIterator[PlaneClient]:
    async with planes.plane(HOME).client() as client:
        yield client


async def whoami(client: PlaneClient) -> str:
    answer = await client.post(REVIEWS, REVIEW)
    return text_at(answer, "status", "userInfo", "username")


async def test_a_cluster_accepts_the_tokens_of_the_stack(planes: RealPlanes) -> None:
    async with planes.plane(HOME).client(READER.user) as client:
        assert await whoami(client) == READER.user
        with pytest.raises(ApiError) as refused:
            await client.get("/api/v1/namespaces")
    assert refused.value.code == 403


async def test_a_token_of_another_plane_is_nothing_to_a_cluster(planes: RealPlanes) -> None:
    plane, root = planes.plane(HOME), planes.plane("root")
    stranger = Endpoint(plane.server, plane.runtime.pki.authority, root.endpoint().token)
    async with PlaneClient(stranger) as client:
        assert await client.is_refused("/api/v1/namespaces")


async def test_what_is_asked_of_a_cluster_is_in_the_stacks_audit_log(
    planes: RealPlanes, home: PlaneClient
) -> None:
    await home.apply(a_namespace("audited"))
    lines = planes.run_folder.audit_of(HOME).read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines if "/api/v1/namespaces/audited" in line]
    assert {text_at(one, "user", "username") for one in entries} == {"planes-admin"}


async def test_only_the_stack_sets_the_address_of_a_cluster_for_pods(
    planes: RealPlanes, home: PlaneClient, announced: dict[str, str]
) -> None:
    assert announced == {HOME: planes.plane(HOME).server}
    service = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    assert await home.find(service) is None


async def test_milo_believes_tokens_that_a_cluster_issued_for_it(
    planes: RealPlanes, home: PlaneClient
) -> None:
    """A token for the cluster itself is refused."""
    await home.apply(a_namespace(SYSTEM))
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"namespace": SYSTEM, "name": ACCOUNT},
    }
    await home.apply(account)
    for audiences, is_believed in ((["compute-milo"], True), ([], False)):
        asked: JsonObject = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [*audiences]},
        }
        path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT}/token"
        token = Token(text_at(object_at(await home.post(path, asked), "status"), "token"))
        milo = Endpoint(planes.milo.server(), planes.plane("root").runtime.pki.authority, token)
        async with PlaneClient(milo) as client:
            if is_believed:
                wanted = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
                assert await whoami(client) == wanted
            else:
                assert await client.is_refused("/version")


async def test_a_link_to_a_cluster_can_be_cut(planes: RealPlanes) -> None:
    plane = planes.plane(HOME)
    async with planes.link(HOME) as link:
        through = Endpoint(
            f"https://{link.address}:{link.port}",
            plane.runtime.pki.authority,
            plane.endpoint().token,
        )
        async with PlaneClient(through) as client:
            assert await client.get("/version")
            await link.cut()
            with pytest.raises(aiohttp.ClientConnectionError):
                await client.get("/version")


async def test_a_node_that_lost_its_power_comes_back_as_it_was(
    double: Path, clusters: KindClusters, home: PlaneClient
) -> None:
    await home.apply(a_namespace("kept"))
    node = "compute-home-control-plane"
    await home.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    reboot = asyncio.create_task(clusters.node(HOME).reboot())
    while not reboot.done():
        await _beat(home, node)
        await asyncio.sleep(0.2)
    await reboot
    assert await home.find("/api/v1/namespaces/kept")
    power = [line for line in fake_programs.read_record(double) if line.endswith(node)]
    assert [line for line in power if "inspect" not in line] == [
        f"docker kill {node}",
        f"docker start {node}",
    ]


@pytest.mark.usefixtures("planes")
def test_programs_of_a_node_are_found_from_this_machine(clusters: KindClusters) -> None:
    node = clusters.node(HOME)
    pid = node.pid_of("kube-apiserver")
    assert Path(process_lookup.command_of(pid)[0]).name == "kube-apiserver"
    with pytest.raises(PlanesError, match="no-such-program of node compute-home-control-plane"):
        node.pid_of("no-such-program")


async def _beat(client: PlaneClient, node: str) -> None:
    """Sends a kubelet's heartbeats, once a second."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready: JsonObject = {"type": "Ready", "status": "True", "lastHeartbeatTime": now}
    try:
        path = f"/api/v1/nodes/{node}/status"
        await client.patch(path, {"status": {"conditions": [ready]}})
    except (aiohttp.ClientError, OSError):  # its API server is on the node that is down
        return


# --- Karmada --------------------------------------------------------------------------------------


def karmadactls_deployment() -> JsonObject:
    """The Deployment of `karmadactl init`, as far as it is read."""
    server: JsonObject = {
        "name": "karmada-apiserver",
        "image": "registry.k8s.io/kube-apiserver:v1.35.0",
        "command": ["kube-apiserver", "--authorization-mode=Node,RBAC", "--secure-port=5443"],
        "volumeMounts": [
            {"name": "karmada-cert", "mountPath": "/etc/karmada/pki", "readOnly": True}
        ],
    }
    volume: JsonObject = {"name": "karmada-cert", "secret": {"secretName": "karmada-cert"}}
    labels: JsonObject = {"app": "karmada-apiserver"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "karmada-system", "name": "karmada-apiserver"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [server], "volumes": [volume]},
            },
        },
    }


async def test_karmadas_api_server_is_opened_to_the_stack(
    planes: RealPlanes, home: PlaneClient
) -> None:
    await home.apply(a_namespace("karmada-system"))
    await home.create(karmadactls_deployment())
    await open_to_stack(planes.plane(HOME), "hub")
    deployment = await home.get(API_SERVER)
    assert text_at(deployment, "spec", "strategy", "type") == "Recreate"
    template = object_at(deployment, "spec", "template", "spec")
    (server,) = objects_at(template, "containers")
    command = texts_at(server, "command")
    assert command[1] == "--authorization-mode=Node,RBAC"
    assert "--audit-log-path=/var/log/compute-audit/hub.log" in command
    mounted = {
        text_at(one, "name"): text_at(one, "mountPath")
        for one in objects_at(server, "volumeMounts")
    }
    volumes = {text_at(one, "name") for one in objects_at(template, "volumes")}
    assert set(mounted) == volumes == {"karmada-cert", "compute-access", "compute-audit"}
    files = [word.partition("=")[2] for word in command[3:] if "=/" in word]
    assert len(files) == 4
    assert all(any(file.startswith(f"{path}/") for path in mounted.values()) for file in files)


def test_an_api_server_knows_every_flag_that_karmadas_is_given() -> None:
    program = find_programs(PLANES, Store.of_user())["kube-apiserver"]
    helped = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    change = derive_opened(karmadactls_deployment(), "hub")
    (server,) = objects_at(change, "spec", "template", "spec", "containers")
    names = [word.partition("=")[0] for word in texts_at(server, "command")[1:]]
    assert len(names) == 10
    assert [name for name in names if f"{name} " not in helped] == []
