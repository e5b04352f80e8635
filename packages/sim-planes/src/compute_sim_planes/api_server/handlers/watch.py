"""Watches: from a version on, or from the present with everything that exists first."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server import api_errors, field_problems
from compute_sim_planes.api_server.call import Call
from compute_sim_planes.api_server.handlers.read import parse_version
from compute_sim_planes.api_server.presentation import Form, form_of, present_object
from compute_sim_planes.api_server.selection import Selection, select
from compute_sim_planes.api_server.storage.records import ChangeType, encode, render_line
from compute_sim_planes.api_server.streams import Render, WatchStream
from compute_sim_planes.json_types import JsonObject

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_BEFORE_THE_END: Final = timedelta(seconds=2)


async def watch(call: Call) -> WatchStream:
    selection = select(call)
    wants_initial = _wants_initial_events(call)
    version = _parse_version(call)
    stream = WatchStream(call.kind, selection, _renderer(call))
    state = call.state
    bucket = state.store.bucket(call.kind.group_resource)
    state.store.compact_by_age()
    oldest = max(state.store.compacted, bucket.opened)
    if version and not wants_initial and version < oldest:
        # A real server has already answered 200 by then: the refusal is the stream's only event.
        stream.add_line(_too_old(version, oldest))
        stream.end()
        return stream
    if version and not wants_initial:
        for change in bucket.changes_after(version):
            stream.add_change(change)
    elif call.query.get("sendInitialEvents") is None or wants_initial:
        _add_existing(call, stream, selection)
    if wants_initial:
        stream.add_line(_bookmark(call, {INITIAL_EVENTS_END: "true"}))
    stream.on_end(bucket.watch(stream.add_change))
    duration = _duration(call)
    stream.end_after(duration)
    if call.flag("allowWatchBookmarks"):
        _schedule_bookmarks(call, stream, duration)
    state.streams[stream] = None
    stream.on_end(lambda: state.streams.pop(stream, None))
    return stream


def _schedule_bookmarks(call: Call, stream: WatchStream, duration: timedelta) -> None:
    """One every minute, and one shortly before the end, so that the next watch begins there."""

    def send() -> None:
        stream.add_line(_bookmark(call))

    stream.repeat(call.state.limits.bookmark_every, send)
    if duration > _BEFORE_THE_END:
        stream.call_after(duration - _BEFORE_THE_END, send)


def _parse_version(call: Call) -> int:
    text = call.query.get("resourceVersion", "")
    try:
        return parse_version(text)
    except api_errors.ApiError as error:
        # A list refuses such a version itself, a watch leaves it to the storage.
        message = error.message.removeprefix("invalid resource version: ")
        raise api_errors.unexplained(message) from error


def _wants_initial_events(call: Call) -> bool:
    if "sendInitialEvents" not in call.query:
        if call.query.get("resourceVersionMatch"):
            problem = field_problems.forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
            raise api_errors.invalid_options("ListOptions", [problem])
        return False
    if call.query.get("resourceVersionMatch") != "NotOlderThan":
        problem = field_problems.forbidden(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )
        raise api_errors.invalid_options("ListOptions", [problem])
    return call.flag("sendInitialEvents")


def _renderer(call: Call) -> Render:
    form, kind = form_of(call), call.kind
    if form is Form.OBJECT:
        return lambda change, seen: change.line(seen, kind)
    return lambda change, seen: render_line(seen, present_object(call, change.shown(seen, kind)))


def _add_existing(call: Call, stream: WatchStream, selection: Selection) -> None:
    bucket = call.state.store.bucket(call.kind.group_resource)
    for stored in bucket.listed(selection.prefix):
        if selection.matches(stored):
            shown = present_object(call, stored.read_as(call.kind))
            stream.add_line(render_line(ChangeType.ADDED, shown))


def _bookmark(call: Call, annotations: JsonObject | None = None) -> bytes:
    metadata: JsonObject = {"resourceVersion": str(call.state.store.revision)}
    if annotations:
        metadata["annotations"] = annotations
    shown: JsonObject = {
        "kind": call.kind.kind,
        "apiVersion": call.kind.api_version,
        "metadata": metadata,
    }
    return render_line("BOOKMARK", encode(shown))


def _too_old(version: int, oldest: int) -> bytes:
    refused = api_errors.expired(f"too old resource version: {version} ({oldest})")
    return render_line("ERROR", encode(refused.body()))


def _duration(call: Call) -> timedelta:
    seconds = call.whole_number("timeoutSeconds")
    return timedelta(seconds=seconds) if seconds else call.state.limits.watch_timeout
