"""Lists: order, selectors, pages, versions."""

from __future__ import annotations

import base64

import pytest

from compute_sim_planes.api_server.testing import (
    Api,
    ApiResponse,
    a_config_map,
    a_widget,
    metadata_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, objects_at, string_at


def names_in(existing: JsonObject) -> list[str]:
    return [string_at(item, "metadata", "name") for item in objects_at(existing, "items")]


async def make(api: Api, widgets: str, *names: str) -> None:
    for name in names:
        (await api.post(widgets, a_widget(name))).expect(201)


async def test_a_list_is_in_order_of_names_and_carries_the_version_of_the_plane(
    api: Api, widgets: str
) -> None:
    await make(api, widgets, "c", "a", "b")
    last = (await api.get(f"{widgets}/b")).expect(200)
    listed = (await api.get(widgets)).expect(200)
    assert listed["kind"] == "WidgetList"
    assert listed["apiVersion"] == "contract.example.com/v1"
    assert names_in(listed) == ["a", "b", "c"]
    assert int(version_of(listed)) >= int(version_of(last))
    assert all(item["kind"] == "Widget" for item in objects_at(listed, "items"))


async def test_items_of_built_in_kinds_carry_no_kind(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await api.post(path, a_config_map())).expect(201)
    listed = (await api.get(path)).expect(200)
    assert listed["kind"] == "ConfigMapList"
    assert all("kind" not in item for item in objects_at(listed, "items"))


async def test_a_list_over_all_namespaces_holds_this_one(api: Api, widgets: str) -> None:
    await make(api, widgets, "somewhere")
    listed = (await api.get("/apis/contract.example.com/v1/widgets")).expect(200)
    assert "somewhere" in names_in(listed)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("color=red", ["a", "c"]),
        ("color==red", ["a", "c"]),
        ("color!=red", ["b", "d"]),
        ("color in (red,blue)", ["a", "b", "c"]),
        ("color notin (red)", ["b", "d"]),
        ("color", ["a", "b", "c"]),
        ("!color", ["d"]),
        ("color=red,size=1", ["a"]),
        ("size>1", ["b", "c"]),
        ("size<2", ["a"]),
    ],
)
async def test_labels_select(api: Api, widgets: str, selector: str, expected: list[str]) -> None:
    for name, labels in (
        ("a", {"color": "red", "size": "1"}),
        ("b", {"color": "blue", "size": "2"}),
        ("c", {"color": "red", "size": "3"}),
        ("d", {}),
    ):
        (await api.post(widgets, a_widget(name, labels={**labels}))).expect(201)
    listed = (await api.get(widgets, labelSelector=selector)).expect(200)
    assert names_in(listed) == expected


async def test_names_and_namespaces_can_be_selected_as_fields(
    api: Api, widgets: str, namespace: str
) -> None:
    await make(api, widgets, "a", "b")
    listed = (await api.get(widgets, fieldSelector="metadata.name=b")).expect(200)
    assert names_in(listed) == ["b"]
    others = (await api.get(widgets, fieldSelector="metadata.name!=b")).expect(200)
    assert names_in(others) == ["a"]
    everywhere = await api.get(
        "/apis/contract.example.com/v1/widgets", fieldSelector=f"metadata.namespace={namespace}"
    )
    assert names_in(everywhere.expect(200)) == ["a", "b"]


async def test_other_fields_cannot_be_selected(api: Api, widgets: str) -> None:
    refused = await api.get(widgets, fieldSelector="spec.size=1")
    refused.expect(400)
    assert refused.message == "field label not supported: spec.size"


async def test_events_are_selected_by_what_they_are_about(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/events"
    for name in ("x", "y"):
        event: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"event-{name}"},
            "involvedObject": {"kind": "Pod", "name": name, "namespace": namespace},
            "reason": "Tested",
            "message": "it was",
            "type": "Normal",
        }
        (await api.post(path, event)).expect(201)
    listed = (await api.get(path, fieldSelector="involvedObject.name=x")).expect(200)
    assert names_in(listed) == ["event-x"]


async def test_a_selector_that_cannot_be_read_is_refused(api: Api, widgets: str) -> None:
    refused = await api.get(widgets, labelSelector="a in b")
    refused.expect(400)
    assert refused.reason == "BadRequest"
    (await api.delete(widgets, labelSelector="===")).expect(400)


async def test_pages_join_to_the_whole_at_one_version(api: Api, widgets: str) -> None:
    await make(api, widgets, "a", "b", "c", "d", "e")
    first = (await api.get(widgets, limit=2)).expect(200)
    assert names_in(first) == ["a", "b"]
    assert metadata_of(first)["remainingItemCount"] == 3
    # Later changes are not visible: the list continues at its first version.
    (await api.delete(f"{widgets}/c")).expect(200)
    (await api.post(widgets, a_widget("bb"))).expect(201)
    (await api.merge(f"{widgets}/d", {"spec": {"size": 9}})).expect(200)
    token = string_at(first, "metadata", "continue")
    second = await read_on(api, widgets, token)
    assert names_in(second.body) == ["c", "d"]
    assert [item["spec"] for item in objects_at(second.body, "items")] == [
        {"size": 1, "color": "red"},
        {"size": 1, "color": "red"},
    ]
    assert version_of(second.body) == version_of(first)
    third = await read_on(api, widgets, string_at(second.body, "metadata", "continue"))
    assert names_in(third.body) == ["e"]
    assert string_at(third.body, "metadata", "continue") == ""
    assert "remainingItemCount" not in metadata_of(third.body)


async def read_on(api: Api, path: str, token: str) -> ApiResponse:
    reply = await api.send("GET", f"{path}?limit=2&continue={token}")
    reply.expect(200)
    return reply


async def test_remaining_item_count_is_absent_with_a_selector(api: Api, widgets: str) -> None:
    for name in "abc":
        (await api.post(widgets, a_widget(name, labels={"x": "y"}))).expect(201)
    page = (await api.get(widgets, limit=1, labelSelector="x=y")).expect(200)
    assert string_at(page, "metadata", "continue")
    assert "remainingItemCount" not in metadata_of(page)


async def test_a_token_that_is_none_is_refused(api: Api, widgets: str) -> None:
    token = base64.urlsafe_b64encode(b"nonsense").decode()
    refused = await api.get(widgets, **{"continue": token})
    refused.expect(400)
    assert refused.message.startswith("invalid continue token: ")


async def test_a_version_that_was_not_reached_is_waited_for_in_vain(api: Api, widgets: str) -> None:
    listed = (await api.get(widgets)).expect(200)
    far = int(version_of(listed)) + 1_000_000
    refused = await api.get(widgets, resourceVersion=far)
    refused.expect(504)
    assert refused.reason == "Timeout"
    assert refused.message.startswith(f"Timeout: Too large resource version: {far}, current: ")
    assert refused.headers["Retry-After"] == "1"
    causes = objects_at(refused.details, "causes")
    assert causes == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


async def test_any_version_that_was_reached_is_fresh_enough(api: Api, widgets: str) -> None:
    await make(api, widgets, "a")
    made = (await api.get(f"{widgets}/a")).expect(200)
    for version in ("0", version_of(made)):
        listed = (await api.get(widgets, resourceVersion=version)).expect(200)
        assert names_in(listed) == ["a"]


async def test_an_exact_version_shows_the_past(api: Api, widgets: str) -> None:
    await make(api, widgets, "a")
    made = (await api.get(f"{widgets}/a")).expect(200)
    await make(api, widgets, "b")
    past = await api.get(
        widgets, resourceVersion=version_of(made), resourceVersionMatch="Exact", limit=10
    )
    assert names_in(past.expect(200)) == ["a"]
    assert version_of(past.body) == version_of(made)


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Sometimes", "resourceVersion": "1"},
    ],
)
async def test_version_options_without_a_meaning_are_refused(
    api: Api, widgets: str, query: dict[str, str]
) -> None:
    refused = await api.get(widgets, **query)
    refused.expect(422)
    assert refused.message.startswith('ListOptions.meta.k8s.io "" is invalid: ')


async def test_a_version_that_is_no_number_is_refused(api: Api, widgets: str) -> None:
    (await api.get(widgets, resourceVersion="abc")).expect(400)
