from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from typing_extensions import override

from compute_kubeconfig.exec_plugins import ExecPluginError
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import (
    AlreadyExists,
    Bookmark,
    Deleted,
    Expired,
    FieldOwner,
    NotServed,
    ObjectUpserted,
    Page,
    Preconditions,
    Selector,
    WatchEvent,
)
from compute_operator_kit.client.rest import (
    ANSWER_TOO_LARGE,
    LARGEST_ANSWER,
    Credentials,
    RestConfig,
)
from compute_operator_kit.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    InvariantError,
    OutcomeUnknownError,
    ThrottledError,
    UnavailableError,
)
from compute_operator_kit.core.json import JsonObject, UndecodableError
from compute_operator_kit.core.json_patch import PatchOp, PatchStep
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.testing.fakes import (
    A_KIND,
    FakeClock,
    FakeMetrics,
    ScriptedResponse,
    ScriptedTransport,
    a_key,
    a_snapshot,
)

HUB = PlaneName("hub")
KEY = a_key(plane="hub")
WRITER = FieldOwner(controller="mirror", field_manager="compute-mirror")
NOTE = a_snapshot(KEY)
OK = ScriptedResponse(200, NOTE.raw)
PLACE = "place-in-a-list"
OBJECT_PATH = "/apis/example.datumapis.com/v1/namespaces/default/notes/web"


def a_status(code: int, reason: str = "", **details: object) -> ScriptedResponse:
    body = {"kind": "Status", "code": code, "reason": reason, "details": details}
    return ScriptedResponse(code, orjson.dumps(body))


class World:
    """One client over a script."""

    def __init__(
        self,
        *script: ScriptedResponse | OSError,
        credentials: Credentials | None = None,
        request_timeout: timedelta = timedelta(seconds=10),
        base_path: str = "",
    ) -> None:
        self.transport = ScriptedTransport(*script)
        self.measures = FakeMetrics()
        self.lane = FlowControl(HUB, FakeClock())
        connection = RestConfig(
            HUB,
            Role.HUB,
            self.transport,
            self.lane,
            base_path=base_path,
            user_agent="compute-example/1.0",
            request_timeout=request_timeout,
            measures=self.measures,
        )
        if credentials is not None:
            connection = RestConfig(
                HUB, Role.HUB, self.transport, self.lane, credentials, measures=self.measures
            )
        self.kube = HttpKubeClient(connection, WRITER)

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.transport.sent[-1].target).query)

    @property
    def body(self) -> object:
        sent = self.transport.sent[-1].body
        return None if sent is None else orjson.loads(sent)

    @property
    def path(self) -> str:
        return urlsplit(self.transport.sent[-1].target).path


# reading ---------------------------------------------------------------------------------------


async def test_an_object_is_read_with_its_header() -> None:
    world = World(OK)
    snapshot = await world.kube.get(KEY)
    assert snapshot == NOTE
    assert world.path == OBJECT_PATH
    assert world.transport.sent[0].headers["User-Agent"] == "compute-example/1.0 (mirror)"


async def test_an_absent_object_is_a_value() -> None:
    world = World(a_status(404, "NotFound", name="web", kind="notes"))
    assert await world.kube.get(KEY) == Absent()


@pytest.mark.fault("B10")
async def test_a_kind_that_is_not_served_is_not_an_absent_object() -> None:
    world = World(ScriptedResponse(404, b"404 page not found\n"))
    with pytest.raises(UnavailableError) as raised:
        await world.kube.get(KEY)
    assert raised.value.reason == "KindNotServed"


async def test_a_key_of_another_plane_is_never_asked_for_here() -> None:
    world = World()
    with pytest.raises(InvariantError, match="of another plane"):
        await world.kube.get(a_key(plane="other"))
    with pytest.raises(InvariantError, match="of another plane"):
        await world.kube.create(a_key(plane="other"), {})
    assert world.transport.sent == []


async def test_a_plane_under_a_path_keeps_it() -> None:
    world = World(OK, base_path="/projects/p1/control-plane")
    await world.kube.get(KEY)
    assert world.path == "/projects/p1/control-plane" + OBJECT_PATH


async def test_a_page_of_a_list() -> None:
    items = [a_snapshot(a_key(name, plane="hub")).decode() for name in ("a", "b")]
    for item in items:
        del item["kind"], item["apiVersion"]
    listed = {"metadata": {"resourceVersion": "9", "continue": "t"}, "items": [*items, {}, 7]}
    world = World(ScriptedResponse(200, orjson.dumps(listed)))
    page = await world.kube.list(
        A_KIND, namespace="default", selector=Selector.of_labels({"a": "b"}), continue_token=PLACE
    )
    assert isinstance(page, Page)
    assert [item.snapshot.key.name for item in page.items] == ["a", "b"]
    assert (page.resource_version, page.continue_token, page.unreadable) == ("9", "t", 2)
    assert world.query == {"limit": ["500"], "continue": [PLACE], "labelSelector": ["a=b"]}


async def test_a_list_without_items_is_empty() -> None:
    listed = {"metadata": {"resourceVersion": "9"}, "items": None}
    page = await World(ScriptedResponse(200, orjson.dumps(listed))).kube.list(A_KIND)
    assert isinstance(page, Page)
    assert (page.items, page.resource_version, page.continue_token) == ((), "9", "")


@pytest.mark.fault("B6")
async def test_an_expired_list_and_an_unserved_kind_are_values() -> None:
    world = World(a_status(410, "Expired"), ScriptedResponse(404, b"404 page not found"))
    assert await world.kube.list(A_KIND, continue_token=PLACE) == Expired()
    assert await world.kube.list(A_KIND) == NotServed()


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    chunk = b"x" * 1024 * 1024
    endless = ScriptedResponse(200, *([chunk] * (LARGEST_ANSWER // len(chunk) + 2)))
    with pytest.raises(UnavailableError) as raised:
        await World(endless).kube.list(A_KIND)
    assert raised.value.reason == ANSWER_TOO_LARGE
    assert endless.is_closed


# watching --------------------------------------------------------------------------------------


async def collect(world: World) -> list[WatchEvent]:
    received: list[WatchEvent] = []
    events = world.kube.watch(A_KIND, resource_version="5", lasting=timedelta(seconds=300))
    async with aclosing(events):
        async for batch in events:
            received += batch
    return received


def a_line(word: str, body: Mapping[str, object]) -> bytes:
    return orjson.dumps({"type": word, "object": body}) + b"\n"


async def test_a_watch_gives_events_as_they_arrive() -> None:
    stream = a_line("ADDED", NOTE.decode()) + a_line(
        "BOOKMARK", {"metadata": {"resourceVersion": "8"}}
    )
    answer = ScriptedResponse(200, stream[:50], stream[50:])
    world = World(answer)
    events = await collect(world)
    assert [type(event) for event in events] == [ObjectUpserted, Bookmark]
    assert world.query["resourceVersion"] == ["5"]
    assert world.query["timeoutSeconds"] == ["300"]
    assert world.query["allowWatchBookmarks"] == ["true"]
    assert answer.is_closed


@pytest.mark.fault("B6")
async def test_a_watch_that_cannot_begin_says_that_it_is_expired() -> None:
    assert await collect(World(a_status(410, "Expired"))) == [Expired()]


@pytest.mark.fault("C6")
async def test_a_watch_that_is_refused_raises() -> None:
    with pytest.raises(ForbiddenError):
        await collect(World(a_status(403, "Forbidden")))


@pytest.mark.fault("B8")
async def test_a_stream_cut_in_mid_line_ends_and_gives_no_half_event() -> None:
    line = a_line("ADDED", NOTE.decode())
    assert await collect(World(ScriptedResponse(200, line + line[:40]))) != []
    events = await collect(World(ScriptedResponse(200, line[:-20])))
    assert events == []


@pytest.mark.fault("B8")
async def test_a_stream_of_garbage_raises_and_is_closed() -> None:
    answer = ScriptedResponse(200, b"\xff\xfe\n", hangs=True)
    with pytest.raises(UndecodableError):
        await collect(World(answer))
    assert answer.is_closed


@pytest.mark.fault("C4")
async def test_a_stream_with_a_lost_connection_raises_our_error() -> None:
    answer = ScriptedResponse(200, a_line("ADDED", NOTE.decode()), then=ConnectionResetError())
    with pytest.raises(UnavailableError) as raised:
        await collect(World(answer))
    assert raised.value.reason == "ConnectionLost"


async def test_a_watcher_that_leaves_closes_its_stream() -> None:
    answer = ScriptedResponse(200, a_line("ADDED", NOTE.decode()), hangs=True)
    events = World(answer).kube.watch(A_KIND, resource_version="5", lasting=timedelta(seconds=300))
    async with aclosing(events):
        await anext(events)
    assert answer.is_closed


# writing ---------------------------------------------------------------------------------------


async def test_a_create_names_its_writer_and_is_counted() -> None:
    world = World(ScriptedResponse(201, NOTE.raw))
    assert await world.kube.create(KEY, {"kind": "Note"}) == NOTE
    sent = world.transport.sent[0]
    assert sent.method == "POST"
    assert world.path == "/apis/example.datumapis.com/v1/namespaces/default/notes"
    assert world.query == {"fieldManager": ["compute-mirror"]}
    assert sent.headers["Content-Type"] == "application/json"
    labels = {"plane": "hub", "kind": "Note", "verb": "create", "controller": "mirror"}
    assert world.measures.total("compute_writes_total", **labels) == 1
    assert world.measures.total("rest_client_requests_total", code="201", host="hub") == 1


async def test_a_review_is_a_question_and_no_write() -> None:
    world = World(ScriptedResponse(201, b'{"status":{"allowed":true}}'), ConnectionResetError("x"))
    review = Kind(
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        namespaced=False,
    )
    assert await world.kube.review(review, {"spec": {}}) == {"status": {"allowed": True}}
    assert world.transport.sent[0].method == "POST"
    assert world.measures.total("compute_writes_total") == 0
    assert world.measures.total("rest_client_requests_total", code="201", host="hub") == 1
    with pytest.raises(UnavailableError) as raised:
        await world.kube.review(review, {"spec": {}})
    assert not isinstance(raised.value, OutcomeUnknownError)  # asked again, it changes nothing


async def test_a_name_that_is_taken_is_a_value_and_another_409_is_not() -> None:
    world = World(a_status(409, "AlreadyExists"), a_status(409, "Conflict"))
    assert await world.kube.create(KEY, {}) == AlreadyExists()
    with pytest.raises(ConflictError):
        await world.kube.create(KEY, {})


async def test_a_delete_carries_its_preconditions() -> None:
    world = World(ScriptedResponse(200, b"{}"), a_status(404, "NotFound", name="web"))
    wanted = Preconditions(Uid("u1"), "7")
    assert await world.kube.delete(KEY, preconditions=wanted) == Deleted()
    assert world.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1", "resourceVersion": "7"},
        "propagationPolicy": "Background",
    }
    assert await world.kube.delete(KEY, preconditions=Preconditions(Uid("u1"))) == Absent()


async def test_a_delete_of_another_uid_is_a_conflict() -> None:
    with pytest.raises(ConflictError):
        await World(a_status(409, "Conflict")).kube.delete(
            KEY, preconditions=Preconditions(Uid("u1"))
        )


async def test_every_patch_has_its_own_content_type() -> None:
    world = World(*[ScriptedResponse(200, NOTE.raw) for _ in range(3)])
    await world.kube.patch_merge(KEY, {"a": 1}, subresource="status")
    assert world.query == {"fieldManager": ["compute-mirror"]}
    assert world.path == OBJECT_PATH + "/status"
    await world.kube.patch_json(KEY, [PatchStep(PatchOp.REMOVE, "/a")])
    assert world.body == [{"op": "remove", "path": "/a"}]
    await world.kube.update(KEY, {"a": 1})
    assert [(sent.method, sent.headers["Content-Type"]) for sent in world.transport.sent] == [
        ("PATCH", "application/merge-patch+json"),
        ("PATCH", "application/json-patch+json"),
        ("PUT", "application/json"),
    ]


async def test_status_is_written_to_its_own_path() -> None:
    world = World(OK, a_status(404, "NotFound", name="web"))
    assert await world.kube.update_status(KEY, {}) == NOTE
    assert world.path == OBJECT_PATH + "/status"
    assert await world.kube.update_status(KEY, {}) == Absent()


async def test_a_review_is_answered_and_not_stored() -> None:
    world = World(ScriptedResponse(201, b'{"status":{"allowed":true}}'))
    assert await world.kube.review(A_KIND, {}) == {"status": {"allowed": True}}


async def test_another_writer_shares_the_plane_and_shows_its_own_name() -> None:
    world = World(ScriptedResponse(201, NOTE.raw))
    other = world.kube.as_owner(FieldOwner("other", "compute-other"))
    assert other.plane == "hub"
    await other.create(KEY, {})
    assert world.query == {"fieldManager": ["compute-other"]}
    assert world.transport.sent[0].headers["User-Agent"].endswith("(other)")


# failing ---------------------------------------------------------------------------------------


@pytest.mark.fault("C5")
@pytest.mark.parametrize("failure", [ConnectionResetError(), TimeoutError(), OSError()])
async def test_a_write_without_an_answer_has_an_unknown_outcome(failure: OSError) -> None:
    with pytest.raises(OutcomeUnknownError):
        await World(failure).kube.create(KEY, {})


@pytest.mark.fault("C4")
async def test_a_write_that_was_never_sent_has_none() -> None:
    with pytest.raises(UnavailableError) as raised:
        await World(ConnectionRefusedError()).kube.create(KEY, {})
    assert not isinstance(raised.value, OutcomeUnknownError)


@pytest.mark.fault("C5")
async def test_a_request_has_a_deadline_that_includes_its_answer() -> None:
    answer = ScriptedResponse(200, b"{", hangs=True)
    world = World(answer, request_timeout=timedelta(milliseconds=10))
    with pytest.raises(OutcomeUnknownError) as raised:
        await world.kube.create(KEY, {})
    assert raised.value.reason == "Timeout"
    assert answer.is_closed
    assert not world.lane.is_up


@pytest.mark.parametrize("body", [b"", b"garbage", b"[]", b'{"metadata":{}}'])
async def test_an_answer_that_cannot_be_read_is_no_success(body: bytes) -> None:
    with pytest.raises(UnavailableError) as raised:
        await World(ScriptedResponse(200, body)).kube.get(KEY)
    assert raised.value.reason == "Garbled"
    with pytest.raises(OutcomeUnknownError):
        await World(ScriptedResponse(201, body)).kube.create(KEY, {})


@pytest.mark.fault("C3")
async def test_after_a_429_nothing_is_sent_until_the_pause_is_over() -> None:
    world = World(ScriptedResponse(429, b"", headers={"Retry-After": "5"}))
    with pytest.raises(ThrottledError) as raised:
        await world.kube.get(KEY)
    assert raised.value.retry_after == timedelta(seconds=5)
    with pytest.raises(ThrottledError):
        await world.kube.create(KEY, {})
    assert len(world.transport.sent) == 1


@pytest.mark.fault("C3")
@pytest.mark.spec("M-98")
async def test_the_storage_of_a_kind_that_starts_holds_up_no_other_kind() -> None:
    words = b'{"kind":"Status","message":"storage is (re)initializing"}'
    world = World(ScriptedResponse(429, words, headers={"Retry-After": "1"}), OK)
    with pytest.raises(ThrottledError) as raised:
        await world.kube.get(KEY)
    assert raised.value.retry_after == timedelta(seconds=1)
    assert await world.kube.get(KEY) == NOTE
    assert not world.lane.is_open


async def test_a_429_without_a_time_is_a_pause_of_a_second() -> None:
    world = World(ScriptedResponse(429, b""))
    for _ in range(2):
        with pytest.raises(ThrottledError) as raised:
            await world.kube.get(KEY)
        assert raised.value.retry_after == timedelta(seconds=1)
    assert len(world.transport.sent) == 1


@pytest.mark.fault("C4")
async def test_five_failures_open_the_breaker_and_a_probe_closes_it() -> None:
    world = World(*[ConnectionRefusedError() for _ in range(6)], ScriptedResponse(403, b""), OK)
    for _ in range(7):
        with pytest.raises(UnavailableError):
            await world.kube.get(KEY)
    assert len(world.transport.sent) == 5
    with pytest.raises(UnavailableError):
        await world.kube.probe(A_KIND)
    await world.kube.probe(A_KIND)
    assert world.query == {"limit": ["1"]}
    assert await world.kube.get(KEY) == NOTE


async def test_a_probe_answered_by_a_broken_server_is_no_answer() -> None:
    with pytest.raises(UnavailableError):
        await World(ScriptedResponse(500, b"")).kube.probe(A_KIND)


@pytest.mark.fault("G6")
async def test_a_name_that_is_no_path_segment_is_never_sent() -> None:
    world = World()
    with pytest.raises(InvalidSpecError):
        await world.kube.get(a_key("..", plane="hub"))
    assert world.transport.sent == []


class RotatingToken:
    """A token that is another one after each refresh, as long as there are any."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.tokens[0]}"}

    async def refresh(self) -> bool:
        if len(self.tokens) > 1:
            self.tokens.pop(0)
            return True
        return False


@pytest.mark.fault("C6")
async def test_a_401_is_tried_once_more_with_a_token_read_again() -> None:
    refused = ScriptedResponse(401, b"")
    world = World(refused, OK, credentials=RotatingToken("old", "new"))
    assert isinstance(await world.kube.get(KEY), Snapshot)
    sent = [request.headers["Authorization"] for request in world.transport.sent]
    assert sent == ["Bearer old", "Bearer new"]
    assert refused.is_closed


@pytest.mark.fault("C6")
async def test_a_401_without_new_credentials_is_an_error() -> None:
    world = World(ScriptedResponse(401, b""), credentials=RotatingToken("old"))
    with pytest.raises(ForbiddenError):
        await world.kube.get(KEY)
    world = World(
        ScriptedResponse(401, b""),
        ScriptedResponse(401, b""),
        credentials=RotatingToken("a", "b", "c"),
    )
    with pytest.raises(ForbiddenError):
        await world.kube.get(KEY)
    assert len(world.transport.sent) == 2


class FailingPlugin(RotatingToken):
    """An exec plugin that gave its first token and gives no other."""

    @override
    async def headers(self) -> Mapping[str, str]:
        if not self.tokens:
            raise ExecPluginError("running 'get-token' for a credential: it ends with 1")
        return await super().headers()

    @override
    async def refresh(self) -> bool:
        raise ExecPluginError("running 'get-token' for a credential: it ends with 1")


@pytest.mark.parametrize("tokens", [(), ("old",)])
async def test_a_credential_plugin_that_fails_makes_the_plane_unavailable(
    tokens: tuple[str, ...],
) -> None:
    world = World(ScriptedResponse(401, b""), credentials=FailingPlugin(*tokens))
    with pytest.raises(UnavailableError, match="get-token") as failed:
        await world.kube.get(KEY)
    assert failed.value.reason == "CredentialPluginFailed"
    assert failed.value.__cause__ is None


async def test_a_cancelled_request_closes_its_answer() -> None:
    answer = ScriptedResponse(200, b"{", hangs=True)
    task = asyncio.create_task(World(answer).kube.get(KEY))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert answer.is_closed


SECRET = Kind("", "v1", "secrets", "Secret", is_metadata_only=True)
# As `kubectl apply` leaves it, and as a server serves it that does not know the form asked for.
MARKED: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "db",
        "namespace": "default",
        "uid": "u-1",
        "resourceVersion": "7",
        "labels": {"a": "b"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "MARKER",
            "compute.datumapis.com/source-version": "u/1",
        },
    },
    "data": {"password": "MARKER"},
}


async def test_a_kind_of_metadata_only_is_asked_for_and_kept_without_values() -> None:
    page = {"metadata": {"resourceVersion": "7"}, "items": [MARKED]}
    line = orjson.dumps({"type": "ADDED", "object": MARKED}) + b"\n"
    world = World(
        ScriptedResponse(200, orjson.dumps(MARKED)),
        ScriptedResponse(200, orjson.dumps(page)),
        ScriptedResponse(200, line),
        ScriptedResponse(201, orjson.dumps(MARKED)),
    )
    key = ObjectKey(HUB, SECRET, "default", "db")
    read = await world.kube.get(key)
    listed = await world.kube.list(SECRET)
    events: list[WatchEvent] = []
    watch = world.kube.watch(SECRET, resource_version="7", lasting=timedelta(minutes=1))
    async with aclosing(watch) as batches:
        async for batch in batches:
            events.extend(batch)
    written = await world.kube.create(key, MARKED)
    assert isinstance(listed, Page)
    assert isinstance(read, Snapshot)
    assert isinstance(written, Snapshot)
    (event,) = events
    assert isinstance(event, ObjectUpserted)
    received = [read, written, *(one.snapshot for one in listed.items), event.received.snapshot]
    for snapshot in received:
        assert b"MARKER" not in snapshot.raw
        assert snapshot.key == key
        assert snapshot.metadata.labels == {"a": "b"}
        assert snapshot.metadata.annotations == {"compute.datumapis.com/source-version": "u/1"}
    forms = [
        sent.headers["Accept"].partition(";")[2].split(";")[0] for sent in world.transport.sent
    ]
    assert forms == [
        "as=PartialObjectMetadata",
        "as=PartialObjectMetadataList",
        "as=PartialObjectMetadata",
        "as=PartialObjectMetadata",
    ]
