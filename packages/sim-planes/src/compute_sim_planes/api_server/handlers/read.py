"""Handlers of get and list, at a resourceVersion."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.http.continue_token import Continuation, parse_continuation
from compute_sim_planes.api_server.http.presentation import present_list, present_object
from compute_sim_planes.api_server.http.request import ApiRequest
from compute_sim_planes.api_server.http.responses import object_response, render_list
from compute_sim_planes.api_server.http.selection import Selection, select
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.storage.bucket import Bucket
from compute_sim_planes.api_server.storage.records import StoredObject
from compute_sim_planes.json_types import JsonObject


async def get(call: ApiRequest) -> Response:
    await await_version(call, parse_version(call.query.get("resourceVersion", "")))
    kind = call.kind
    existing = call.state.store.get(kind.group_resource, call.namespace, call.name)
    if existing is None:
        raise api_errors.not_found(kind.group_resource, call.name)
    return object_response(present_object(call, existing.read_as(kind)))


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list, and the token for the next part."""

    items: list[StoredObject]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


async def list_objects(call: ApiRequest) -> Response:
    selection = select(call)
    page = await read_page(call, selection)
    kind = call.kind
    items = [stored.read_in_list(kind) for stored in page.items]
    return object_response(present_list(call, items, list_metadata(call, page), render_list))


def list_metadata(call: ApiRequest, page: Page) -> JsonObject:
    metadata: JsonObject = {"resourceVersion": str(page.revision)}
    # Lists of kinds from CRDs have the field even when there is nothing to continue.
    if page.continue_token or not call.kind.built_in:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


async def read_page(call: ApiRequest, selection: Selection) -> Page:
    """The objects of a list request, at the resourceVersion it names."""
    limit = max(0, call.whole_number("limit") or 0)
    token = call.query.get("continue", "")
    asked = call.query.get("resourceVersion", "")
    check_version_match(call, asked, token)
    bucket = call.state.store.bucket(call.kind.group_resource)
    if token:
        return _continue_page(call, bucket, selection, parse_continuation(token), limit)
    version = parse_version(asked)
    await await_version(call, version)
    if call.query.get("resourceVersionMatch") == "Exact" and version:
        _check_not_compacted(call, version)
        return _page(bucket, selection, Continuation(version, ""), limit, exact=True)
    return _page(bucket, selection, Continuation(call.state.store.revision, ""), limit)


def _continue_page(
    call: ApiRequest, bucket: Bucket, selection: Selection, start: Continuation, limit: int
) -> Page:
    if start.revision == 0:
        present = Continuation(call.state.store.revision, start.after)
        return _page(bucket, selection, present, limit)
    if not _is_readable(call, start.revision):
        fresh = Continuation(0, start.after).token()
        raise api_errors.expired(api_errors.STALE_CONTINUE, continue_token=fresh)
    return _page(bucket, selection, start, limit, exact=True)


def _is_readable(call: ApiRequest, version: int) -> bool:
    """Whether the state at a version is still known. As in etcd, the version that was compacted is
    one of those: a plane without writes is compacted through the present, and its lists continue.
    """
    call.state.store.compact_by_age()
    return version >= call.state.store.compacted


def _check_not_compacted(call: ApiRequest, version: int) -> None:
    if not _is_readable(call, version):
        raise api_errors.expired("The resourceVersion for the provided list is too old.")


def _page(
    bucket: Bucket, selection: Selection, start: Continuation, limit: int, *, exact: bool = False
) -> Page:
    prefix, revision = selection.prefix, start.revision
    listed = (
        bucket.listed_at(revision, prefix, start.after)
        if exact
        else bucket.listed(prefix, start.after)
    )
    matching = (stored for stored in listed if selection.matches(stored))
    if not limit:
        return Page(list(matching), revision)
    items = list(islice(matching, limit + 1))
    if len(items) <= limit:
        return Page(items, revision)
    items.pop()
    token = Continuation(revision, items[-1].key).token()
    if not selection.is_everything:
        return Page(items, revision, token)
    remaining = sum(1 for _ in bucket.listed_at(revision, prefix, items[-1].key))
    return Page(items, revision, token, remaining)


def parse_version(text: str) -> int:
    """A resourceVersion as a number; empty and 0 both mean any."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        problem = field_problems.invalid(
            "resourceVersion", text, f'strconv.ParseUint: parsing "{text}": invalid syntax'
        )
        raise api_errors.bad_request(f"invalid resource version: {problem}")
    return int(text)


async def await_version(call: ApiRequest, version: int) -> None:
    """Wait for a version that the plane has not reached, as long as a real server does; then
    refuse.
    """
    state = call.state
    if version <= state.store.revision:
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + state.limits.version_wait.total_seconds()
    while version > state.store.revision:
        if loop.time() >= deadline:
            raise api_errors.too_large_version(version, state.store.revision)
        await asyncio.sleep(0.05)


_MATCHES = ("Exact", "NotOlderThan")


def check_version_match(call: ApiRequest, version: str, token: str) -> None:
    """Refuse combinations of version options that a real server refuses."""
    match = call.query.get("resourceVersionMatch", "")
    if not match:
        return
    problem = None
    if match not in _MATCHES:
        problem = field_problems.not_supported("resourceVersionMatch", match, [*_MATCHES, ""])
    elif token:
        problem = field_problems.forbidden(
            "resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"
        )
    elif not version:
        problem = field_problems.forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
    elif match == "Exact" and version == "0":
        problem = field_problems.forbidden(
            "resourceVersionMatch",
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        )
    if problem is not None:
        raise api_errors.invalid_options("ListOptions", [problem])
