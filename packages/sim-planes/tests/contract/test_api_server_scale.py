"""The `scale` subresource of a WorkloadDeployment, as autoscalers and the cell operator use it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import orjson
import pytest
import pytest_asyncio

from compute_api_types.testing import a_deployment, a_workload
from compute_sim_planes.api_server.kinds.crd_documents import is_established
from compute_sim_planes.api_server.manifests import read_manifests
from compute_sim_planes.api_server.testing import (
    STRATEGIC_PATCH,
    Api,
    eventually,
    generation_of,
    metadata_of,
    uid_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at, value_at

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHIPPED: Final = read_manifests(Path(__file__).parents[4] / "deploy" / "crds")
SELECTOR: Final = "compute.datumapis.com/workload-deployment-uid=1"
SHOWN: Final = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}


@pytest_asyncio.fixture
async def web(api: Api, namespace: str) -> str:
    """The path of a WorkloadDeployment without a number."""
    for document in SHIPPED:
        name = string_at(document, "metadata", "name")
        path = f"{CRDS}/{name}"
        (await api.apply(path, document, "deploy", force="true")).expect(200, 201)
        await eventually(partial(api.get, path), lambda response: is_established(response.body))
    collection = f"/apis/compute.datumapis.com/v1alpha/namespaces/{namespace}/workloaddeployments"
    await eventually(partial(api.get, collection), lambda response: response.status == 200)
    model = a_deployment(a_workload())
    dumped: JsonObject = orjson.loads(
        orjson.dumps(model.model_dump(mode="json", by_alias=True, exclude_none=True))
    )
    dumped.pop("status", None)
    (await api.post(collection, {**dumped, "metadata": {"name": "web"}})).expect(201)
    return f"{collection}/web"


@pytest_asyncio.fixture
async def scaled(api: Api, web: str) -> str:
    """The same with the number three, which a cell reports as two replicas."""
    (await api.merge(web, {"spec": {"replicas": 3}})).expect(200)
    stored = object_at((await api.get(web)).expect(200), "status")
    reported: JsonObject = {**stored, "replicas": 2, "selector": SELECTOR}
    (await api.merge(f"{web}/status", {"status": reported})).expect(200)
    return web


def number_of(document: JsonObject) -> JsonValue:
    return value_at(document, "spec", "replicas")


async def test_a_scale_shows_number_replicas_and_selector_of_the_object(
    api: Api, scaled: str
) -> None:
    whole = (await api.get(scaled)).expect(200)
    shown = (await api.get(f"{scaled}/scale")).expect(200)
    assert (shown["kind"], shown["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert shown["spec"] == {"replicas": 3}
    assert shown["status"] == {"replicas": 2, "selector": SELECTOR}
    assert metadata_of(shown).keys() == SHOWN
    assert all(metadata_of(shown)[name] == metadata_of(whole)[name] for name in SHOWN)


async def test_the_scale_of_an_object_without_a_number_cannot_be_read(api: Api, web: str) -> None:
    refused = await api.get(f"{web}/scale")
    refused.expect(500)
    assert refused.reason == "InternalError"
    assert 'the spec replicas field ".spec.replicas" does not exist' in refused.message


async def test_a_scale_put_back_sets_the_number_and_nothing_else(api: Api, scaled: str) -> None:
    before = (await api.get(scaled)).expect(200)
    shown = (await api.get(f"{scaled}/scale")).expect(200)
    other: JsonObject = {"replicas": 9, "selector": "a=b"}
    answered = await api.put(f"{scaled}/scale", {**shown, "spec": {"replicas": 5}, "status": other})
    written = answered.expect(200)
    after = (await api.get(scaled)).expect(200)
    assert (written["kind"], written["spec"]) == ("Scale", {"replicas": 5})
    assert written["status"] == {"replicas": 2, "selector": SELECTOR}
    assert version_of(written) == version_of(after) != version_of(before)
    assert generation_of(after) == (generation_of(before) or 0) + 1
    assert after["status"] == before["status"]
    assert after["spec"] == {**object_at(before, "spec"), "replicas": 5}


async def test_a_scale_put_from_an_old_version_or_for_another_object_is_a_conflict(
    api: Api, scaled: str
) -> None:
    shown = (await api.get(f"{scaled}/scale")).expect(200)
    (await api.merge(scaled, {"spec": {"replicas": 4}})).expect(200)
    stale = await api.put(f"{scaled}/scale", {**shown, "spec": {"replicas": 5}})
    assert (stale.status, stale.reason) == (409, "Conflict")
    metadata = {name: metadata_of(shown)[name] for name in ("name", "namespace")}
    other: JsonObject = {**shown, "metadata": {**metadata, "uid": "of-another"}}
    foreign = await api.put(f"{scaled}/scale", {**other, "spec": {"replicas": 5}})
    assert (foreign.status, foreign.reason) == (409, "Conflict")
    assert number_of((await api.get(scaled)).expect(200)) == 4


async def test_a_scale_put_without_a_version_sets_the_number(api: Api, web: str) -> None:
    metadata: JsonObject = {
        "name": "web",
        "namespace": string_at((await api.get(web)).expect(200), "metadata", "namespace"),
    }
    wanted: JsonObject = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata}
    (await api.put(f"{web}/scale", {**wanted, "spec": {"replicas": 2}})).expect(200)
    assert number_of((await api.get(web)).expect(200)) == 2
    # A number of nought is not sent, and a number that is not sent is nought.
    emptied = (await api.put(f"{web}/scale", wanted)).expect(200)
    assert not object_at(emptied, "spec")
    assert number_of((await api.get(web)).expect(200)) == 0
    (await api.get(f"{web}/scale")).expect(200)


async def test_a_merge_patch_of_a_scale_sets_the_number(api: Api, web: str) -> None:
    written = (await api.merge(f"{web}/scale", {"spec": {"replicas": 4}})).expect(200)
    assert (written["kind"], written["spec"]) == ("Scale", {"replicas": 4})
    assert number_of((await api.get(web)).expect(200)) == 4


async def test_a_merge_patch_of_a_scale_with_an_old_version_is_a_conflict(
    api: Api, scaled: str
) -> None:
    shown = (await api.get(f"{scaled}/scale")).expect(200)
    (await api.merge(scaled, {"spec": {"replicas": 4}})).expect(200)
    metadata: JsonObject = {"resourceVersion": version_of(shown)}
    stale = await api.merge(f"{scaled}/scale", {"metadata": metadata, "spec": {"replicas": 5}})
    assert (stale.status, stale.reason) == (409, "Conflict")


async def test_a_patch_that_brings_no_first_number_is_refused(api: Api, web: str) -> None:
    refused = await api.merge(f"{web}/scale", {"metadata": {}})
    assert (refused.status, refused.reason) == (400, "BadRequest")
    assert 'the spec replicas field ".spec.replicas" cannot be empty' in refused.message
    assert number_of((await api.get(web)).expect(200)) is None


@pytest.mark.parametrize("has_number", [False, True])
async def test_a_json_patch_of_a_scale_tests_the_uid_and_sets_the_number(
    api: Api, web: str, *, has_number: bool
) -> None:
    """The patch by which a cell gives an autoscaler its first number."""
    if has_number:
        (await api.merge(web, {"spec": {"replicas": 1}})).expect(200)
    before = (await api.get(web)).expect(200)

    def steps(uid: str) -> JsonValue:
        return [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/spec/replicas", "value": 6},
        ]

    refused = await api.json_patch(f"{web}/scale", steps("of-another"))
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert (await api.get(web)).expect(200) == before
    written = (await api.json_patch(f"{web}/scale", steps(uid_of(before)))).expect(200)
    after = (await api.get(web)).expect(200)
    assert (written["kind"], number_of(written)) == ("Scale", 6)
    assert version_of(written) == version_of(after)
    assert after["spec"] == {**object_at(before, "spec"), "replicas": 6}


async def test_a_number_below_nought_is_refused(api: Api, scaled: str) -> None:
    refused = await api.merge(f"{scaled}/scale", {"spec": {"replicas": -1}})
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert number_of((await api.get(scaled)).expect(200)) == 3


async def test_a_scale_takes_no_strategic_patch_and_is_neither_made_nor_deleted(
    api: Api, scaled: str
) -> None:
    patch: JsonObject = {"spec": {"replicas": 5}}
    (await api.send("PATCH", f"{scaled}/scale", patch, STRATEGIC_PATCH)).expect(415)
    (await api.post(f"{scaled}/scale", patch)).expect(405)
    (await api.delete(f"{scaled}/scale")).expect(405)


async def test_the_scale_of_an_absent_object_is_not_found(api: Api, scaled: str) -> None:
    absent = f"{scaled}-absent/scale"
    for refused in (await api.get(absent), await api.merge(absent, {"spec": {"replicas": 1}})):
        assert (refused.status, refused.reason) == (404, "NotFound")
