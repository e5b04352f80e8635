"""The stock `kubernetes` client, unchanged, works against the server."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NewType

import pytest

from compute_sim_planes.api_server.testing import Api, ServerAddress, a_widget

# Imported by name: its releases differ in whether and how they are typed, and only behaviour
# matters here.
client = import_module("kubernetes.client")
dynamic = import_module("kubernetes.dynamic")
watch = import_module("kubernetes.watch")

# Opaque: the fixture's value is only passed back to the client.
ApiClient = NewType("ApiClient", object)

GROUP, VERSION, PLURAL = "contract.example.com", "v1", "widgets"


@pytest.fixture
def stock(api_server: ServerAddress, tmp_path: Path) -> Iterator[ApiClient]:
    configuration = client.Configuration()
    configuration.host = api_server.url
    configuration.api_key = {"authorization": f"Bearer {api_server.token}"}
    if api_server.authority is not None:
        bundle = tmp_path / "ca.crt"
        bundle.write_bytes(api_server.authority)
        configuration.ssl_ca_cert = str(bundle)
    with client.ApiClient(configuration) as connected:
        yield connected


@contextmanager
def refusal(status: int) -> Generator[None, None, None]:
    with pytest.raises(client.ApiException) as caught:
        yield
    assert caught.value.status == status


async def test_core_objects_are_created_read_listed_and_deleted(
    stock: ApiClient, namespace: str
) -> None:
    core = client.CoreV1Api(stock)

    def work() -> None:
        desired = client.V1ConfigMap(metadata={"name": "one"}, data={"a": "1"})
        made = core.create_namespaced_config_map(namespace, desired)
        assert made.metadata.uid
        core.patch_namespaced_config_map("one", namespace, {"data": {"b": "2"}})
        existing = core.read_namespaced_config_map("one", namespace)
        assert existing.data == {"a": "1", "b": "2"}
        listed = core.list_namespaced_config_map(namespace, limit=1)
        assert [item.metadata.name for item in listed.items if item.data == existing.data] == [
            "one"
        ]
        core.delete_namespaced_config_map("one", namespace)
        with refusal(404):
            core.read_namespaced_config_map("one", namespace)

    await asyncio.to_thread(work)


async def test_custom_objects_are_replaced_and_report_their_status(
    stock: ApiClient, widgets: str, namespace: str
) -> None:
    del widgets
    custom = client.CustomObjectsApi(stock)
    place = {"group": GROUP, "version": VERSION, "namespace": namespace, "plural": PLURAL}

    def work() -> None:
        made = custom.create_namespaced_custom_object(**place, body=a_widget())
        made["spec"]["size"] = 2
        replaced = custom.replace_namespaced_custom_object(**place, name="one", body=made)
        assert replaced["metadata"]["generation"] == 2
        with refusal(409):
            custom.replace_namespaced_custom_object(**place, name="one", body=made)
        custom.patch_namespaced_custom_object_status(
            **place, name="one", body={"status": {"phase": "Up"}}
        )
        existing = custom.get_namespaced_custom_object(**place, name="one")
        assert existing["status"]["phase"] == "Up"
        with refusal(409):
            custom.create_namespaced_custom_object(**place, body=a_widget())
        custom.delete_collection_namespaced_custom_object(**place)
        assert custom.list_namespaced_custom_object(**place)["items"] == []

    await asyncio.to_thread(work)


async def test_a_watch_delivers_events_until_its_time_is_over(
    stock: ApiClient, api: Api, widgets: str, namespace: str
) -> None:
    custom = client.CustomObjectsApi(stock)
    (await api.post(widgets, a_widget("a"))).expect(201)
    (await api.post(widgets, a_widget("b"))).expect(201)

    def work() -> list[tuple[str, str]]:
        stream = watch.Watch().stream(
            custom.list_namespaced_custom_object,
            group=GROUP,
            version=VERSION,
            namespace=namespace,
            plural=PLURAL,
            timeout_seconds=2,
        )
        return [(event["type"], event["object"]["metadata"]["name"]) for event in stream]

    assert sorted(await asyncio.to_thread(work)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_the_dynamic_client_finds_kinds_and_applies(
    stock: ApiClient, widgets: str, namespace: str
) -> None:
    del widgets

    def work() -> None:
        discovered = dynamic.DynamicClient(stock)
        resource = discovered.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Widget")
        applied = resource.server_side_apply(
            body=a_widget(), name="one", namespace=namespace, field_manager="stock"
        )
        assert applied.spec.size == 1
        assert resource.get(namespace=namespace).items[0].metadata.name == "one"
        resource.delete(name="one", namespace=namespace)

    await asyncio.to_thread(work)


async def test_leases_and_reviews_work(stock: ApiClient, namespace: str) -> None:
    def work() -> None:
        leases = client.CoordinationV1Api(stock)
        spec = client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15)
        lease = client.V1Lease(metadata=client.V1ObjectMeta(name="leader"), spec=spec)
        made = leases.create_namespaced_lease(namespace, lease)
        made.spec.holder_identity = "you"
        assert leases.replace_namespaced_lease("leader", namespace, made).spec.holder_identity == (
            "you"
        )
        with refusal(409):
            leases.replace_namespaced_lease("leader", namespace, made)
        review = client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(
                resource_attributes=client.V1ResourceAttributes(verb="list", resource="secrets")
            )
        )
        answered = client.AuthorizationV1Api(stock).create_self_subject_access_review(review)
        assert answered.status.allowed is True
        assert client.VersionApi(stock).get_code().major == "1"

    await asyncio.to_thread(work)
