"""Watches: initial events, changes, selection, end."""

from __future__ import annotations

from datetime import timedelta

from compute_sim_planes.api_server.testing import (
    Api,
    a_config_map,
    a_widget,
    generation_of,
    metadata_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, object_at, string_at


def seen(event: JsonObject) -> tuple[str, str]:
    return string_at(event, "type"), string_at(event, "object", "metadata", "name")


async def plane_version(api: Api, widgets: str) -> str:
    return version_of((await api.get(widgets)).expect(200))


async def test_a_watch_from_a_version_shows_every_later_change_in_order(
    api: Api, widgets: str
) -> None:
    (await api.post(widgets, a_widget("before"))).expect(201)
    version = await plane_version(api, widgets)
    (await api.post(widgets, a_widget())).expect(201)
    async with api.watch(widgets, resourceVersion=version) as watch:
        (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
        (await api.merge(f"{widgets}/one/status", {"status": {"phase": "Up"}})).expect(200)
        (await api.delete(f"{widgets}/one")).expect(200)
        events = [await watch.next_event() for _ in range(4)]
    assert [seen(event) for event in events] == [
        ("ADDED", "one"),
        ("MODIFIED", "one"),
        ("MODIFIED", "one"),
        ("DELETED", "one"),
    ]
    shown = [object_at(event, "object") for event in events]
    versions = [int(version_of(item)) for item in shown]
    assert versions == sorted(set(versions))
    assert object_at(shown[3], "status")["phase"] == "Up"
    assert shown[0]["kind"] == "Widget"


async def test_a_watch_shows_the_very_bytes_that_a_write_was_answered(
    api: Api, widgets: str
) -> None:
    """Operators recognise their own writes by the bytes."""
    version = await plane_version(api, widgets)
    spec: JsonObject = {"size": 1, "colour": "ü<&>\u2028"}
    async with api.watch(widgets, resourceVersion=version) as watch:
        answers = [
            await api.post(widgets, {**a_widget(labels={"b": "1", "a": "2"}), "spec": spec}),
            await api.merge(f"{widgets}/one", {"spec": {"size": 2}}),
            await api.merge(f"{widgets}/one/status", {"status": {"phase": "Up"}}),
        ]
        lines = [await watch.next_line() for _ in answers]
    for answer, line in zip(answers, lines, strict=True):
        assert answer.status in {200, 201}
        assert line.endswith(b'"object":' + answer.raw.rstrip(b"\n") + b"}\n")


async def test_a_watch_without_a_version_begins_with_what_there_is(api: Api, widgets: str) -> None:
    for name in ("b", "a"):
        (await api.post(widgets, a_widget(name))).expect(201)
    for version in ("", "0"):
        async with api.watch(widgets, resourceVersion=version) as watch:
            events = {seen(await watch.next_event()) for _ in range(2)}
            assert events == {("ADDED", "a"), ("ADDED", "b")}
            name = f"later-{version}"
            (await api.post(widgets, a_widget(name.strip("-") or "later"))).expect(201)
            assert seen(await watch.next_event())[0] == "ADDED"
        (await api.delete(f"{widgets}/{name.strip('-')}")).expect(200)


async def test_a_watch_ends_after_its_time(api: Api, widgets: str) -> None:
    async with api.watch(widgets, timeoutSeconds=1) as watch:
        assert await watch.rest() == []


async def test_a_deletion_with_finalizers_is_a_change_and_then_a_deletion(
    api: Api, widgets: str
) -> None:
    (await api.post(widgets, a_widget(finalizers=["contract.example.com/f"]))).expect(201)
    version = await plane_version(api, widgets)
    async with api.watch(widgets, resourceVersion=version) as watch:
        (await api.delete(f"{widgets}/one")).expect(200)
        marked = await watch.next_event()
        (await api.merge(f"{widgets}/one", {"metadata": {"finalizers": None}})).expect(200)
        gone = await watch.next_event()
    assert seen(marked) == ("MODIFIED", "one")
    assert "deletionTimestamp" in metadata_of(object_at(marked, "object"))
    assert generation_of(object_at(marked, "object")) == 2
    # The update that removed the last finalizer was never stored: the event has the earlier state.
    assert seen(gone) == ("DELETED", "one")
    assert metadata_of(object_at(gone, "object"))["finalizers"] == ["contract.example.com/f"]
    assert int(version_of(object_at(gone, "object"))) > int(version_of(object_at(marked, "object")))


async def test_objects_enter_and_leave_a_selector(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    version = await plane_version(api, widgets)
    path = f"{widgets}/one"
    async with api.watch(widgets, resourceVersion=version, labelSelector="show=yes") as watch:
        (await api.merge(path, {"spec": {"size": 2}})).expect(200)
        (await api.merge(path, {"metadata": {"labels": {"show": "yes"}}})).expect(200)
        (await api.merge(path, {"spec": {"size": 3}})).expect(200)
        left = (await api.merge(path, {"metadata": {"labels": {"show": "no"}}})).expect(200)
        (await api.delete(path)).expect(200)
        (await api.post(widgets, a_widget("two", labels={"show": "yes"}))).expect(201)
        events = [await watch.next_event() for _ in range(4)]
    assert [seen(event) for event in events] == [
        ("ADDED", "one"),
        ("MODIFIED", "one"),
        ("DELETED", "one"),
        ("ADDED", "two"),
    ]
    gone = object_at(events[2], "object")
    assert metadata_of(gone)["labels"] == {"show": "yes"}
    assert version_of(gone) == version_of(left)


async def test_one_object_is_watched_by_a_field_selector(api: Api, widgets: str) -> None:
    version = await plane_version(api, widgets)
    selector = "metadata.name=two"
    async with api.watch(widgets, resourceVersion=version, fieldSelector=selector) as watch:
        (await api.post(widgets, a_widget())).expect(201)
        (await api.post(widgets, a_widget("two"))).expect(201)
        assert seen(await watch.next_event()) == ("ADDED", "two")


async def test_a_watch_of_one_namespace_shows_no_other(
    api: Api, widgets: str, namespace: str
) -> None:
    version = await plane_version(api, widgets)
    other = widgets.replace(namespace, "default")
    async with api.watch(widgets, resourceVersion=version) as watch:
        stranger = (await api.post(other, a_widget("stranger"))).expect(201)
        (await api.delete(f"{other}/{metadata_of(stranger)['name']}")).expect(200)
        (await api.post(widgets, a_widget())).expect(201)
        assert seen(await watch.next_event()) == ("ADDED", "one")


async def test_a_version_from_before_the_kind_is_expired(api: Api, widgets: str) -> None:
    async with api.watch(widgets, resourceVersion=1) as watch:
        events = await watch.rest()
    assert [event["type"] for event in events] == ["ERROR"]
    status = object_at(events[0], "object")
    assert status["kind"] == "Status"
    assert status["code"] == 410
    assert status["reason"] == "Expired"
    assert string_at(status, "message").startswith("too old resource version: 1 (")


async def test_initial_events_end_with_a_bookmark(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    async with api.watch(
        widgets,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as watch:
        assert seen(await watch.next_event()) == ("ADDED", "one")
        bookmark = await watch.next_event()
        (await api.post(widgets, a_widget("two"))).expect(201)
        assert seen(await watch.next_event()) == ("ADDED", "two")
    assert bookmark["type"] == "BOOKMARK"
    shown = object_at(bookmark, "object")
    assert metadata_of(shown)["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert shown["kind"] == "Widget"
    assert int(version_of(shown)) > 0


async def test_initial_events_need_a_version_match(api: Api, widgets: str) -> None:
    refused = await api.get(widgets, watch="true", sendInitialEvents="true")
    refused.expect(422)
    assert (
        "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch "
        "to NotOlderThan"
    ) in refused.message


async def test_a_bookmark_has_the_version_shortly_before_the_timeout(
    api: Api, widgets: str
) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    version = await plane_version(api, widgets)
    events: list[JsonObject] = []
    for _ in range(3):  # not guaranteed: a busy machine may miss the moment
        async with api.watch(
            widgets, resourceVersion=version, allowWatchBookmarks="true", timeoutSeconds=4
        ) as watch:
            events = await watch.rest(timedelta(seconds=20))
        if events:
            break
    assert {string_at(event, "type") for event in events} == {"BOOKMARK"}
    assert int(version_of(object_at(events[-1], "object"))) >= int(version)


async def test_built_in_kinds_are_watched_alike(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    version = version_of((await api.get(path)).expect(200))
    async with api.watch(path, resourceVersion=version) as watch:
        (await api.post(path, a_config_map())).expect(201)
        event = await watch.next_event()
    assert seen(event) == ("ADDED", "one")
    assert object_at(event, "object")["kind"] == "ConfigMap"


async def test_a_watch_sees_what_others_see_in_the_same_order(api: Api, widgets: str) -> None:
    version = await plane_version(api, widgets)
    async with (
        api.watch(widgets, resourceVersion=version) as first,
        api.watch(widgets, resourceVersion=version) as second,
    ):
        for name in ("c", "a", "b"):
            (await api.post(widgets, a_widget(name))).expect(201)
        events = [await first.next_event() for _ in range(3)]
        assert [await second.next_event() for _ in range(3)] == events
    assert [seen(event)[1] for event in events] == ["c", "a", "b"]
