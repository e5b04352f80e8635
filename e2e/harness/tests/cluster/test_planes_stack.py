from __future__ import annotations

import json

import pytest

from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from e2e.harness.access.client import ApiError, Endpoint, PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.planes.identities import MANAGEMENT, a_cell_operator
from e2e.harness.planes.topology import CITY_LABEL, FULL
from e2e.harness.stack.stack import RealPlanes

PLANE_NAMES = [plane.name for plane in FULL.planes]
CONTEXTS = [*PLANE_NAMES, "milo", "milo-p1", "milo-p2"]
A_CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: by-kubectl, namespace: default}
data: {key: value}
"""


def a_reader_binding(user: str) -> JsonObject:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"reads-{user.replace(':', '-')}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


@pytest.mark.parametrize("name", CONTEXTS)
async def test_kubectl_works_in_every_context(real_planes: RealPlanes, name: str) -> None:
    assert set(CONTEXTS) <= set(real_planes.contexts)
    kubectl, context = real_planes.kubectl, f"--context={name}"
    await kubectl(context, "apply", "-f", "-", stdin=A_CONFIG_MAP)
    await kubectl(context, "wait", "--for=create", "configmap/by-kubectl", "--timeout=5s")
    assert "by-kubectl" in await kubectl(context, "get", "configmaps")
    assert "value" in await kubectl(context, "describe", "configmap", "by-kubectl")
    await kubectl(context, "delete", "configmap", "by-kubectl")


@pytest.mark.parametrize("plane", PLANE_NAMES)
async def test_plane_reports_its_kubernetes_version(real_planes: RealPlanes, plane: str) -> None:
    async with real_planes.plane(plane).client() as client:
        assert string_at(await client.get("/version"), "gitVersion") == "v1.35.4"


async def test_both_cells_are_members_with_their_city(real_planes: RealPlanes) -> None:
    async with real_planes.plane("hub").client() as client:
        clusters = await client.get("/apis/cluster.karmada.io/v1alpha1/clusters")
    cities = {
        string_at(cluster, "metadata", "name"): string_at(cluster, "metadata", "labels", CITY_LABEL)
        for cluster in objects_at(clusters, "items")
    }
    assert cities == {"dfw-1": "DFW", "ord-1": "ORD"}


async def test_objects_of_one_plane_are_not_on_another(real_planes: RealPlanes) -> None:
    planes = [real_planes.plane(name) for name in ("p1", "p2")]
    uids: set[str] = set()
    for plane in planes:
        async with plane.client() as client:
            namespace = await client.get("/api/v1/namespaces/default")
            uids.add(string_at(namespace, "metadata", "uid"))
    assert len(uids) == len(planes)


async def test_token_of_one_plane_is_refused_by_another(real_planes: RealPlanes) -> None:
    hub, cell = real_planes.plane("hub").endpoint(), real_planes.plane("dfw-1").endpoint()
    async with PlaneClient(Endpoint(cell.server, cell.authority, hub.token)) as client:
        with pytest.raises(ApiError) as refused:
            await client.get("/api/v1/namespaces")
    assert refused.value.code == 401


async def test_identity_without_a_binding_may_do_nothing(real_planes: RealPlanes) -> None:
    user = a_cell_operator("dfw-1").user
    async with real_planes.plane("hub").client(user) as client:
        with pytest.raises(ApiError) as refused:
            await client.get("/api/v1/namespaces")
    assert refused.value.code == 403
    assert user in str(refused.value)


async def test_binding_at_the_root_holds_in_the_project_and_one_in_the_project_grants_nothing(
    real_planes: RealPlanes,
) -> None:
    root, project = real_planes.plane("root"), real_planes.plane("p1")
    bound_at_root, bound_in_project = MANAGEMENT.user, a_cell_operator("ord-1").user
    async with root.client() as client:
        await client.apply(a_reader_binding(bound_at_root))
    async with project.client() as client:
        await client.apply(a_reader_binding(bound_in_project))

    async with project.client(bound_at_root) as client:

        async def allowed() -> JsonObject:
            return await client.get("/api/v1/namespaces/default/configmaps")

        await until("the root's binding to hold", allowed, check=real_planes.check)
    async with project.client(bound_in_project) as client:
        with pytest.raises(ApiError) as refused:
            await client.get("/api/v1/namespaces/default/configmaps")
    assert refused.value.code == 403


async def test_audit_log_has_user_verb_and_plane(real_planes: RealPlanes) -> None:
    user = a_cell_operator("ord-1").user
    async with real_planes.plane("ord-1").client(user) as client:
        with pytest.raises(ApiError):
            await client.get("/api/v1/namespaces/default/secrets/nothing")

    async def audited() -> JsonObject | None:
        for line in real_planes.run_folder.audit_of("ord-1").read_text("utf-8").splitlines():
            entry: JsonValue = json.loads(line)
            if isinstance(entry, dict) and string_at(entry, "user", "username") == user:
                return entry
        return None

    entry = await until("the audit log to have it", audited, check=real_planes.check)
    assert string_at(entry, "verb") == "get"
    assert string_at(entry, "objectRef", "resource") == "secrets"


async def test_owned_object_goes_with_its_owner(real_planes: RealPlanes) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    async with real_planes.plane("dfw-1").client() as client:
        meta: JsonObject = {"namespace": "default", "name": "owner"}
        owner = await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        reference: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": string_at(owner, "metadata", "uid"),
        }
        owned: JsonObject = {
            "namespace": "default",
            "name": "owned",
            "ownerReferences": [reference],
        }
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned})
        await client.delete(f"{path}/owner")

        async def gone() -> bool:
            return await client.find(f"{path}/owned") is None

        await until("the owned object to go", gone, check=real_planes.check)


async def test_memory_of_the_full_topology_stays_within_its_limit(real_planes: RealPlanes) -> None:
    assert len(real_planes.processes) >= 19
    assert 0 < real_planes.rss() < 4 * 1024**3
