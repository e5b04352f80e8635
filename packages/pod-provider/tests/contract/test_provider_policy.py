"""Policy `compute-instance-pods` and role H as `deploy/` has them, clause by clause."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from provider_builders.cluster import PODS, Cluster, a_cluster
from provider_builders.documents import a_container, a_spec, an_instance
from provider_builders.rights import PROVIDER

from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import object_at, objects_at, read_instance
from compute_pod_provider.options import PodOptions
from compute_pod_provider.render import render
from compute_sim_planes.api_server.testing import ApiResponse
from compute_sim_planes.certificates import ServerFiles

VOLUMES: Final[list[JsonValue]] = [
    {"name": "c", "configMap": {"name": "c"}},
    {"name": "s", "secret": {"secretName": "s"}},
    {
        "name": "d",
        "disk": {
            "template": {
                "spec": {
                    "type": "pd-standard",
                    "resources": {"requests": {"storage": "1Gi"}},
                    "populator": {"filesystem": {"type": "ext4"}},
                }
            }
        },
    },
]
Edit = Callable[[JsonObject], None]


def a_rendered_pod(options: PodOptions | None = None, **members: JsonValue) -> JsonObject:
    """The Pod as the provider sends it, with every kind of volume."""
    spec = a_spec(a_container(ports=[{"name": "http", "port": 8080}]), **members)
    rendered = render(read_instance(an_instance(spec=spec)), options or PodOptions())
    assert isinstance(rendered, dict)
    return rendered


def spec_of(pod: JsonObject) -> JsonObject:
    return object_at(pod, "spec")


def container_of(pod: JsonObject) -> JsonObject:
    return objects_at(spec_of(pod), "containers")[0]


def change(document: JsonObject, members: JsonObject) -> None:
    """Sets members; None takes one away."""
    document.update(deepcopy(members))
    for name in [name for name, value in members.items() if value is None]:
        del document[name]


def in_spec(**members: JsonValue) -> Edit:
    return lambda pod: change(spec_of(pod), members)


def in_container(**members: JsonValue) -> Edit:
    return lambda pod: change(container_of(pod), members)


def in_security(**members: JsonValue) -> Edit:
    return lambda pod: change(object_at(container_of(pod), "securityContext"), members)


def in_init_container(**members: JsonValue) -> Edit:
    """A second container, of the kind that webhooks inject."""

    def edit(pod: JsonObject) -> None:
        added = deepcopy(container_of(pod)) | {"name": "injected"}
        change(added, members)
        spec_of(pod)["initContainers"] = [added]

    return edit


def owned_by(**members: JsonValue) -> Edit:
    return lambda pod: change(objects_at(object_at(pod, "metadata"), "ownerReferences")[0], members)


def labelled(**members: JsonValue) -> Edit:
    return lambda pod: change(object_at(pod, "metadata"), members)


def with_resources(limits: JsonObject, requests: JsonObject) -> Edit:
    return in_container(resources={"limits": limits, "requests": requests})


@dataclass(frozen=True, slots=True)
class Clause:
    """A Pod that breaks one clause, and the refusal."""

    title: str
    edit: Edit
    message: str


LABEL: Final = "label app.kubernetes.io/managed-by must be compute-pod-provider"
CONTROLLER: Final = "the controller must be an Instance of the name of the Pod"
HOST: Final = "namespaces of the host are not for Instances"
VOLUME: Final = "volumes must be of kind configMap, secret or emptyDir"
TOKEN: Final = "the token of a service account is not for Instances"  # noqa: S105
SECCOMP: Final = "the seccomp profile must be RuntimeDefault"
PRIVILEGE: Final = "containers must not be privileged nor become it"
LIMITS: Final = "every container must have limits of CPU and memory, equal to its requests"
SIZE: Final[JsonObject] = {"cpu": "1", "memory": "1Gi"}
CLAUSES: Final = (
    Clause("without labels", labelled(labels=None), LABEL),
    Clause("another label", labelled(labels={"app.kubernetes.io/managed-by": "helm"}), LABEL),
    Clause("without an owner", labelled(ownerReferences=None), CONTROLLER),
    Clause("not controlled", owned_by(controller=False), CONTROLLER),
    Clause("another kind", owned_by(kind="ReplicaSet"), CONTROLLER),
    Clause("another group", owned_by(apiVersion="apps/v1"), CONTROLLER),
    Clause("another name", owned_by(name="web-dfw-1"), CONTROLLER),
    Clause("host network", in_spec(hostNetwork=True), HOST),
    Clause("host processes", in_spec(hostPID=True), HOST),
    Clause("host IPC", in_spec(hostIPC=True), HOST),
    Clause(
        "host process of Windows",
        in_spec(
            securityContext={
                "seccompProfile": {"type": "RuntimeDefault"},
                "windowsOptions": {"hostProcess": True},
            }
        ),
        HOST,
    ),
    Clause("a node by name", in_spec(nodeName="node-1"), "the scheduler chooses the node"),
    Clause("host path", in_spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), VOLUME),
    Clause(
        "projected token",
        in_spec(
            volumes=[
                {
                    "name": "v",
                    "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
                }
            ]
        ),
        VOLUME,
    ),
    Clause("device", in_spec(volumes=[{"name": "v", "csi": {"driver": "x"}}]), VOLUME),
    Clause("token by default", in_spec(automountServiceAccountToken=None), TOKEN),
    Clause("token", in_spec(automountServiceAccountToken=True), TOKEN),
    Clause("another service account", in_spec(serviceAccountName="builder"), TOKEN),
    Clause("no profile", in_spec(securityContext={"runAsNonRoot": True}), SECCOMP),
    Clause(
        "unconfined",
        in_spec(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        SECCOMP,
    ),
    Clause("container unconfined", in_security(seccompProfile={"type": "Unconfined"}), SECCOMP),
    Clause(
        "host port",
        in_container(ports=[{"containerPort": 80, "hostPort": 80}]),
        "ports of the host are not for Instances",
    ),
    Clause("privileged", in_security(privileged=True), PRIVILEGE),
    Clause("escalation", in_security(allowPrivilegeEscalation=True), PRIVILEGE),
    Clause("escalation by default", in_container(securityContext=None), PRIVILEGE),
    Clause("unmasked proc", in_security(procMount="Unmasked"), PRIVILEGE),
    Clause("container of the host", in_security(windowsOptions={"hostProcess": True}), PRIVILEGE),
    Clause(
        "added capability",
        in_security(capabilities={"drop": ["ALL"], "add": ["NET_ADMIN"]}),
        "no capability may be added",
    ),
    Clause("no limits", in_container(resources=None), LIMITS),
    Clause("no memory limit", with_resources({"cpu": "1"}, SIZE), LIMITS),
    Clause("smaller request", with_resources(SIZE, SIZE | {"cpu": "10m"}), LIMITS),
    Clause("injected without limits", in_init_container(resources=None), LIMITS),
    Clause(
        "injected and privileged",
        in_init_container(securityContext={"privileged": True}),
        PRIVILEGE,
    ),
)
ALLOWED: Final[dict[str, Edit]] = {
    "as rendered": lambda _: None,
    "injected, bounded and unprivileged": in_init_container(),
    "default service account": in_spec(serviceAccountName="default"),
    "temporary storage by a LimitRange": with_resources(
        SIZE | {"ephemeral-storage": "2Gi"}, SIZE | {"ephemeral-storage": "1Gi"}
    ),
}


async def send(cluster: Cluster, pod: JsonObject, path: str = PODS) -> ApiResponse:
    namespace = path.split("/")[4]
    object_at(pod, "metadata")["namespace"] = namespace
    return await cluster.api.impersonating(PROVIDER).post(path, pod, dryRun="All")


def cause_of(answer: ApiResponse) -> str:
    return answer.message.partition(" denied request: ")[2]


@pytest.mark.spec("PP-32")
@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.title)
async def test_a_pod_that_breaks_one_clause_is_refused(cluster: Cluster, clause: Clause) -> None:
    pod = a_rendered_pod()
    clause.edit(pod)
    answer = await send(cluster, pod)
    assert (answer.status, cause_of(answer)) == (403, clause.message)
    assert "ValidatingAdmissionPolicy 'compute-instance-pods'" in answer.message


@pytest.mark.spec("PP-32")
@pytest.mark.parametrize("title", sorted(ALLOWED))
async def test_a_pod_of_an_instance_is_allowed(cluster: Cluster, title: str) -> None:
    pod = a_rendered_pod()
    ALLOWED[title](pod)
    assert (await send(cluster, pod)).status == 201


@pytest.mark.spec("PP-32")
@pytest.mark.parametrize(
    "options",
    [
        PodOptions(has_ephemeral_disks=True),
        PodOptions(has_ephemeral_disks=True, is_restricted=False),
        PodOptions(has_ephemeral_disks=True, runtime_class="gvisor", priority_class="low"),
    ],
)
async def test_whatever_is_configured_its_pods_are_allowed(
    cluster: Cluster, options: PodOptions
) -> None:
    assert (await send(cluster, a_rendered_pod(options, volumes=VOLUMES))).status == 201


SCOPES: Final = {
    "pod-provider": {
        "ns-1f0a2b3c-4d5e-4f60-8a7b-9c0d1e2f3a4b": True,
        "ns-other": False,
        "default": False,
        "kube-system": False,
        "compute-system": False,
    },
    "single-cluster": {
        "ns-1f0a2b3c-4d5e-4f60-8a7b-9c0d1e2f3a4b": True,
        "ns-other": True,
        "default": True,
        "kube-system": False,
        "compute-system": False,
    },
}


@pytest_asyncio.fixture(params=sorted(SCOPES))
async def scoped(
    request: pytest.FixtureRequest, server_files: ServerFiles, tmp_path: Path
) -> AsyncIterator[tuple[str, Cluster]]:
    overlay = str(request.param)
    async with a_cluster(server_files, tmp_path, overlay) as running:
        yield overlay, running


@pytest.mark.spec("PP-32")
async def test_the_policy_has_the_scope_of_the_configuration(scoped: tuple[str, Cluster]) -> None:
    overlay, cluster = scoped
    options = PodOptions(is_federated=overlay == "pod-provider")
    other: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns-other"}}
    await cluster.api.post("/api/v1/namespaces", other)
    for namespace, is_allowed in SCOPES[overlay].items():
        assert options.is_in_scope(namespace) is is_allowed
        answer = await send(cluster, a_rendered_pod(), f"/api/v1/namespaces/{namespace}/pods")
        assert (answer.status == 201) is is_allowed, namespace
        if not is_allowed:
            assert cause_of(answer).startswith("the namespace is not one whose Instances")


@pytest.mark.spec("PP-32")
async def test_pods_of_others_are_not_deleted_and_others_are_not_held(cluster: Cluster) -> None:
    foreign: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "foreign"},
        "spec": {"containers": [{"name": "x", "image": "x:hang"}], "hostNetwork": True},
    }
    # The policy is for the provider alone.
    (await cluster.api.post(PODS, foreign)).expect(201)
    as_provider = cluster.api.impersonating(PROVIDER)
    refused = await as_provider.delete(f"{PODS}/foreign")
    assert (refused.status, cause_of(refused)) == (403, LABEL)
    own = a_rendered_pod()
    # What a webhook added, in whichever shape, does not hold the Pod for ever.
    in_init_container(resources=None)(own)
    (await cluster.api.post(PODS, own)).expect(201)
    (await as_provider.delete(f"{PODS}/web-dfw-0")).expect(200)


ATTEMPTS: Final = (
    ("GET", "/api/v1/namespaces/kube-system/secrets"),
    ("GET", f"{PODS.removesuffix('pods')}configmaps"),
    ("GET", "/api/v1/namespaces"),
    ("GET", "/api/v1/nodes"),
    ("POST", f"{PODS}/web-dfw-0/exec"),
    ("POST", f"{PODS}/web-dfw-0/eviction"),
    ("POST", f"{PODS.removesuffix('pods')}serviceaccounts/default/token"),
    ("PATCH", f"{PODS}/web-dfw-0"),
    ("PUT", f"{PODS}/web-dfw-0/status"),
    ("DELETE", PODS),
    ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ("GET", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"),
)


@pytest.mark.spec("PP-32")
@pytest.mark.parametrize(("method", "path"), ATTEMPTS)
async def test_its_token_leads_nowhere_else(cluster: Cluster, method: str, path: str) -> None:
    answer = await cluster.api.impersonating(PROVIDER).send(method, path, {})
    assert answer.status == 403
    assert f'User "{PROVIDER}" cannot' in answer.message
    cluster.witness.refused.clear()
