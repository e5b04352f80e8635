"""Handler of watches: from a resourceVersion, or from now with all existing objects first."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.handlers.read import parse_version
from compute_sim_planes.api_server.http.presentation import Form, form_of, present_object
from compute_sim_planes.api_server.http.request import ApiRequest
from compute_sim_planes.api_server.http.selection import Selection, select
from compute_sim_planes.api_server.http.watch_stream import Render, WatchStream
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.storage.records import ChangeType, encode, render_line
from compute_sim_planes.json_types import JsonObject

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_BEFORE_THE_END: Final = timedelta(seconds=2)


async def watch(call: ApiRequest) -> WatchStream:
    selection = select(call)
    wants_initial = _wants_initial_events(call)
    version = _parse_version(call)
    stream = WatchStream(call.kind, selection, _renderer(call))
    state = call.state
    bucket = state.store.bucket(call.kind.group_resource)
    state.store.compact_by_age()
    oldest = max(state.store.compacted, bucket.opened)
    if version and not wants_initial and version < oldest:
        # A real server has already answered 200: the error is the only event of the stream.
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


def _schedule_bookmarks(call: ApiRequest, stream: WatchStream, duration: timedelta) -> None:
    """A bookmark every minute, and one shortly before the end for the start of the next watch."""

    def send() -> None:
        stream.add_line(_bookmark(call))

    stream.repeat(call.state.limits.bookmark_every, send)
    if duration > _BEFORE_THE_END:
        stream.call_after(duration - _BEFORE_THE_END, send)


def _parse_version(call: ApiRequest) -> int:
    text = call.query.get("resourceVersion", "")
    try:
        return parse_version(text)
    except api_errors.StatusError as error:
        # A list refuses such a version itself; a watch passes it to the storage, which fails.
        message = error.message.removeprefix("invalid resource version: ")
        raise api_errors.unexplained(message) from error


def _wants_initial_events(call: ApiRequest) -> bool:
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


def _renderer(call: ApiRequest) -> Render:
    form, kind = form_of(call), call.kind
    if form is Form.OBJECT:
        return lambda change, seen: change.line(seen, kind)
    return lambda change, seen: render_line(seen, present_object(call, change.shown(seen, kind)))


def _add_existing(call: ApiRequest, stream: WatchStream, selection: Selection) -> None:
    bucket = call.state.store.bucket(call.kind.group_resource)
    for stored in bucket.listed(selection.prefix):
        if selection.matches(stored):
            shown = present_object(call, stored.read_as(call.kind))
            stream.add_line(render_line(ChangeType.ADDED, shown))


def _bookmark(call: ApiRequest, annotations: JsonObject | None = None) -> bytes:
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


def _duration(call: ApiRequest) -> timedelta:
    seconds = call.whole_number("timeoutSeconds")
    return timedelta(seconds=seconds) if seconds else call.state.limits.watch_timeout
