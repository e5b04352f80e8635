"""Graceful deletion of Pods, the one kind that a delete does not remove at once."""

from __future__ import annotations

from compute_sim_planes.api_server.testing import Api
from compute_sim_planes.json_types import JsonObject, integer_at, object_at, string_at


def a_pod(name: str, node: str = "") -> JsonObject:
    spec: JsonObject = {
        "terminationGracePeriodSeconds": 20,
        "containers": [{"name": "main", "image": "registry.example.com/app:1"}],
    }
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def test_a_pod_on_a_node_stays_until_kubelet_deletes_it_without_grace(
    api: Api, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    made = (await api.post(pods, a_pod("one", node="nowhere"))).expect(201)
    assert string_at(made, "status", "phase") == "Pending"
    uid = string_at(made, "metadata", "uid")

    marked = (await api.delete(f"{pods}/one", {"preconditions": {"uid": uid}})).expect(200, 202)
    assert string_at(marked, "metadata", "deletionTimestamp")
    assert integer_at(object_at(marked, "metadata"), "deletionGracePeriodSeconds") == 20

    # A status write of kubelet does not remove it, nor does a second delete.
    await api.merge(f"{pods}/one/status", {"status": {"message": "stopping"}})
    (await api.delete(f"{pods}/one")).expect(200, 202)
    (await api.get(f"{pods}/one")).expect(200)

    (await api.delete(f"{pods}/one", {"gracePeriodSeconds": 0})).expect(200)
    (await api.get(f"{pods}/one")).expect(404)


async def test_a_pod_without_a_node_is_removed_at_once(api: Api, namespace: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    (await api.post(pods, a_pod("two"))).expect(201)
    (await api.delete(f"{pods}/two")).expect(200)
    (await api.get(f"{pods}/two")).expect(404)
