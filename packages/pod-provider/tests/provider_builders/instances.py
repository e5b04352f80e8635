"""New Instances for a cluster, and waits for them to go."""

from __future__ import annotations

from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import object_at
from provider_builders.cluster import Cluster, until
from provider_builders.documents import a_container, a_spec, an_instance

NAME: Final = "web-dfw-0"


def a_new_instance(
    tag: str = "ok", *, name: str = NAME, gates: tuple[str, ...] = (), **members: JsonValue
) -> JsonObject:
    container = a_container() | {"image": f"registry.example.com/main:{tag}"}
    document = an_instance(name, spec=a_spec(container, **members), gates=gates, finalizers=())
    metadata = object_at(document, "metadata")
    for given in ("uid", "resourceVersion", "generation"):
        metadata.pop(given)
    return document


async def gone(cluster: Cluster, name: str = NAME) -> None:
    async def is_gone() -> bool:
        return await cluster.instance(name) is None and await cluster.pod(name) is None

    await until(is_gone, f"{name} is still there")


def metadata_of(document: JsonObject | None) -> JsonObject:
    assert document is not None
    return object_at(document, "metadata")
