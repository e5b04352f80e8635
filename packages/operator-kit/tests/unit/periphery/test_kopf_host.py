"""kopf in its thread, in real time: sockets, TLS and a home plane that can be taken away."""

from __future__ import annotations

import asyncio
import gc
import io
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import aiohttp
import kopf
import pytest
import yaml
from aiohttp import web
from kopf._core.reactor.inventory import ResourceMemory
from typing_extensions import override

from compute_operator_kit.certificates import ServingCertificate
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.errors import InvariantError
from compute_operator_kit.keys import Kind
from compute_operator_kit.kopf_host import FrontDoor, KopfHost, Webhook, admission_refusal
from compute_operator_kit.kopf_host.admission import READ_WITHIN
from compute_operator_kit.kopf_host.held import build_settings, check_registry, told_insights
from compute_operator_kit.measures import NoMeasures
from compute_operator_kit.probes import ProbeServer
from compute_operator_kit.settings import Bind
from compute_operator_kit.system_clock import SystemClock
from compute_operator_kit.testing_certificates import Authority, KeyPair
from compute_operator_kit.wire import encode

PATH = "validate-compute-datumapis-com-v1alpha-workload"
WORKLOAD = Kind("compute.datumapis.com", "v1alpha", "workloads", "Workload")
SOON = 20.0


class HomePlane:
    """As much of an API server as kopf looks at, over TLS; counts what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority("home")
        self.folder = folder
        self.asked: list[tuple[str, str]] = []
        self.status = 200
        self.speaks_garbage = False
        self.port = free_port()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.show(self.authority.issue())
        self._runner: web.AppRunner | None = None

    def show(self, pair: KeyPair) -> None:
        self._context.load_cert_chain(*pair.write(self.folder))

    async def start(self) -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, "127.0.0.1", self.port, ssl_context=self._context, reuse_address=True
        )
        await site.start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None

    def credentials(self) -> FileCredentials:
        (self.folder / "ca.crt").write_bytes(self.authority.certificate)
        (self.folder / "token").write_text("token")
        server = f"https://127.0.0.1:{self.port}"
        content = {
            "current-context": "home",
            "contexts": [{"name": "home", "context": {"cluster": "home", "user": "me"}}],
            "clusters": [
                {"name": "home", "cluster": {"server": server, "certificate-authority": "ca.crt"}}
            ],
            "users": [{"name": "me", "user": {"tokenFile": "token"}}],
        }
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return FileCredentials.from_kubeconfig(path, clock=SystemClock())

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append((request.method, request.path))
        assert request.headers["Authorization"] == "Bearer token"
        if self.status != 200:
            return web.json_response({"kind": "Status", "code": self.status}, status=self.status)
        if self.speaks_garbage and request.path == "/apis":
            return web.Response(text="<html>", content_type="application/json")
        if request.path == "/api":
            return web.json_response({"versions": ["v1"]})
        if request.path == "/apis":
            return web.json_response({"groups": []})
        return web.json_response({"resources": []})


def free_port() -> int:
    """A port nobody has, below those the system gives to clients.

    One of theirs could be taken while a server of ours is away, even by a client that wants to
    reach that very server.
    """
    while True:
        port = SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


async def until(condition: Callable[[], bool], longest: float = SOON) -> None:
    async with asyncio.timeout(longest):
        while not condition():  # noqa: ASYNC110  # what is waited for happens in another thread
            await asyncio.sleep(0.02)


class Door:
    """The handlers of an operator, as its front door would bring them, and what happened to
    them.
    """

    def __init__(self) -> None:
        self.began = 0
        self.ended = 0
        self.threads: set[str] = set()

    def register(self, registry: kopf.OperatorRegistry) -> None:
        @kopf.on.startup(registry=registry)
        async def begin(**_: object) -> None:
            self.began += 1
            self.threads.add(threading.current_thread().name)

        @kopf.on.cleanup(registry=registry)
        async def end(**_: object) -> None:
            self.ended += 1

        @kopf.on.probe(id="front-door", registry=registry)
        async def probe(**_: object) -> str:
            return "fine"

        @kopf.on.validate(
            "compute.datumapis.com", "v1alpha", "workloads", id=PATH, registry=registry
        )
        async def validate(spec: kopf.Spec, **_: object) -> None:
            judge(dict(spec))


def judge(spec: dict[str, Any]) -> None:
    if spec.get("verdict") == "refuse":
        raise admission_refusal(
            {
                "code": 422,
                "reason": "Invalid",
                "message": "Workload is invalid",
                "details": {"causes": [{"field": "spec.verdict"}]},
            }
        )
    if spec.get("verdict") == "break":
        raise RuntimeError("c4n4ry in our own error")


class HurryingClock(SystemClock):
    """The machine's clock, which can be put ahead."""

    ahead = timedelta()

    @override
    def monotonic(self) -> timedelta:
        return super().monotonic() + self.ahead


class House:
    """A host with its webhook and home plane."""

    def __init__(self, folder: Path) -> None:
        self.home_folder, self.webhook_folder = folder / "home", folder / "webhook"
        self.home_folder.mkdir()
        self.webhook_folder.mkdir()
        self.home = HomePlane(self.home_folder)
        self.authority = Authority("webhook")
        self.port, self.liveness_port = free_port(), free_port()
        self.certificate = ServingCertificate(
            "webhook",
            *self.authority.issue().write(self.webhook_folder),
            clock=SystemClock(),
            measures=NoMeasures(),
        )
        self.clock = HurryingClock()
        self.door = Door()
        self.host = self.build()

    def build(
        self,
        register: Callable[[kopf.OperatorRegistry], None] | None = None,
        read_within: timedelta = READ_WITHIN,
    ) -> KopfHost:
        bind = Bind("127.0.0.1", self.port)
        webhook = Webhook(bind, self.certificate, [PATH], [WORKLOAD], read_within)
        endpoint = f"http://127.0.0.1:{self.liveness_port}/healthz"
        return KopfHost(
            FrontDoor(register or self.door.register, webhook, endpoint),
            self.home.credentials(),
            clock=self.clock,
            random=Random(1),  # noqa: S311  # jitter, not a secret
            measures=NoMeasures(),
        )

    async def open(self, longest: float = SOON) -> None:
        self.host.start()
        await until(lambda: self.host.find_unready() is None, longest)

    async def review(
        self,
        spec: dict[str, Any] | None = None,
        *,
        path: str = PATH,
        body: bytes | AsyncIterator[bytes] | None = None,
        content_type: str = "application/json",
        trusted: Authority | None = None,
    ) -> tuple[int, Any]:
        context = ssl.create_default_context(
            cadata=(trusted or self.authority).certificate.decode()
        )
        connector = aiohttp.TCPConnector(ssl=context)
        headers = {"Content-Type": content_type}
        sent = body if body is not None else an_admission_review(spec or {})
        data = io.BytesIO(sent) if isinstance(sent, bytes) else sent
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(
                f"https://127.0.0.1:{self.port}/{path}", data=data, headers=headers
            ) as answer,
        ):
            if answer.status == 400:
                return answer.status, await answer.text()
            return answer.status, await answer.json() if answer.status == 200 else None


def an_admission_review(spec: dict[str, Any], operation: str = "CREATE") -> bytes:
    found = {"metadata": {"name": "web", "namespace": "team-a", "uid": "u"}, "spec": spec}
    request = {
        "uid": "review-1",
        "resource": {
            "group": "compute.datumapis.com",
            "version": "v1alpha",
            "resource": "workloads",
        },
        "operation": operation,
        "userInfo": {"username": "alice"},
        "object": found,
        "oldObject": found if operation == "UPDATE" else None,
    }
    return encode(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    )


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path)
    await house.home.start()
    yield house
    await house.host.stop()
    await house.home.stop()


async def test_admission_is_served_over_tls_with_the_full_answer_of_the_handler(
    house: House,
) -> None:
    await house.open()

    status, answer = await house.review({"verdict": "admit"})
    assert status == 200
    assert answer["response"] == {"uid": "review-1", "allowed": True}

    status, answer = await house.review({"verdict": "refuse"})
    assert status == 200
    assert answer["response"] == {
        "uid": "review-1",
        "allowed": False,
        "status": {
            "code": 422,
            "reason": "Invalid",
            "message": "Workload is invalid",
            "details": {"causes": [{"field": "spec.verdict"}]},
        },
    }


async def test_a_refusal_is_not_logged_because_it_repeats_what_the_user_wrote(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.open()

    await house.review({"verdict": "refuse"})

    assert [record for record in caplog.records if "invalid" in record.getMessage()] == []


async def test_an_error_of_ours_refuses_tells_nothing_and_calls_a_person(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.open()

    status, answer = await house.review({"verdict": "break"})

    assert [record.levelname for record in caplog.records if record.exc_info] == ["ERROR"]

    assert status == 200
    assert answer["response"]["allowed"] is False
    assert answer["response"]["status"]["code"] == 500
    assert "c4n4ry" not in str(answer)


async def test_what_is_no_review_of_ours_is_refused_and_never_admitted(house: House) -> None:
    await house.open()

    assert (await house.review(path="validate-something-else"))[0] == 404
    assert (await house.review(path=""))[0] == 404
    assert (await house.review(body=b"{"))[0] == 400
    assert (await house.review(body=b"[]"))[0] == 400
    assert (await house.review(body=b'{"request": {"uid": "x"}}'))[0] == 400
    assert (await house.review(content_type="text/plain"))[0] == 415
    assert (await house.review(body=b" " * (3 * 1024 * 1024 + 1)))[0] == 413
    assert (await house.review({"verdict": "admit"}))[0] == 200


@pytest.mark.parametrize("depth", [130, 900, 5000])
@pytest.mark.spec("AT-21")
async def test_a_review_that_is_too_deep_is_refused_with_its_reason(
    house: House, depth: int
) -> None:
    await house.open()
    deep = b'{"a":' + b"[" * depth + b"]" * depth + b"}"

    status, reason = await house.review(body=deep)

    assert (status, reason) == (400, "decoding JSON: nested deeper than 128 levels")
    assert (await house.review({"verdict": "admit"}))[0] == 200


async def test_a_review_of_two_large_objects_is_read(house: House) -> None:
    await house.open()
    spec = {"text": "x" * 1_400_000}

    status, answer = await house.review(body=an_admission_review(spec, "UPDATE"))

    assert status == 200
    assert answer["response"]["allowed"] is True


async def test_kopf_keeps_no_record_of_what_it_admits(house: House) -> None:
    await house.open()
    for _ in range(20):
        await house.review(body=an_admission_review({}, "UPDATE"))

    gc.collect()
    kept = [found for found in gc.get_objects() if isinstance(found, ResourceMemory)]
    assert len(kept) <= 1  # the last one may still be on its way out


@pytest.mark.spec("S10")
async def test_a_rotated_certificate_is_shown_on_the_same_port(house: House) -> None:
    await house.open()
    rotated = Authority("rotated")
    assert (await house.review())[0] == 200

    rotated.issue().write(house.webhook_folder)
    assert house.certificate.look() is True

    assert (await house.review(trusted=rotated))[0] == 200
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await house.review()
    assert house.host.starts == 1


async def test_probes_answer_for_both_loops_and_for_the_bound_port(house: House) -> None:
    probes = ProbeServer(Bind("127.0.0.1", 0))
    probes.healthy.add("front-door", house.host.find_unhealthy)
    probes.ready.add("webhook", house.host.find_unready)
    await probes.start()

    async def ask(url: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.text()

    base = f"http://127.0.0.1:{probes.port}"
    assert (await ask(f"{base}/healthz"))[0] == 200
    assert (await ask(f"{base}/readyz"))[0] == 503

    await house.open()

    assert (await ask(f"{base}/readyz"))[0] == 200
    # kopf's own endpoint runs `on.probe`.
    assert await ask(f"http://127.0.0.1:{house.liveness_port}/healthz") == (
        200,
        '{"front-door": "fine"}',
    )
    await house.host.stop()
    assert (await ask(f"{base}/readyz"))[0] == 503
    await probes.stop()


async def test_a_loop_that_hangs_is_told_by_liveness(house: House) -> None:
    await house.open()
    assert house.host.find_unhealthy() is None

    # As if nothing had beaten for that long.
    house.clock.ahead += timedelta(seconds=11)

    assert house.host.find_unhealthy() == "event loop of the front door does not answer"
    await until(lambda: house.host.find_unhealthy() is None)


async def test_the_thread_runs_start_up_and_clean_up_and_leaves_nothing(house: House) -> None:
    before = threading.active_count()
    await house.open()
    assert house.door.began == 1
    assert house.door.threads == {"kopf"}

    await house.host.stop()

    assert house.door.ended == 1
    assert threading.active_count() == before
    with pytest.raises(aiohttp.ClientConnectorError):
        await house.review()


async def test_kopf_only_reads_discovery_and_writes_nothing(house: House) -> None:
    await house.open()
    for _ in range(5):
        await house.review({"verdict": "admit"})
    await until(lambda: ("GET", "/apis") in house.home.asked)
    await house.host.stop()

    assert {method for method, _ in house.home.asked} == {"GET"}
    assert not any("?" in path or "watch" in path for _, path in house.home.asked)


async def test_a_home_plane_away_at_start_stops_neither_admission_nor_anything_else(
    house: House,
) -> None:
    await house.home.stop()
    ticks = 0

    async def reconcile() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    other_work = asyncio.create_task(reconcile())
    try:
        await house.open()
        status, answer = await house.review({"verdict": "refuse"})
        assert status == 200
        assert answer["response"]["allowed"] is False
        seen = ticks
        await until(lambda: ticks > seen + 20)
        assert house.host.find_unhealthy() is None

        # It comes back, and kopf finds it by itself.
        await house.home.start()
        await until(lambda: bool(house.home.asked), longest=20)
    finally:
        other_work.cancel()
        await asyncio.wait({other_work})


async def test_a_home_plane_that_goes_away_later_stops_nothing_either(house: House) -> None:
    await house.open()
    await until(lambda: ("GET", "/apis") in house.home.asked)

    await house.home.stop()

    for _ in range(3):
        assert (await house.review({"verdict": "admit"}))[0] == 200
    assert house.host.starts == 1


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_a_home_plane_that_only_answers_errors_does_not_take_admission_down(
    house: House, status: int
) -> None:
    house.home.status = status
    await house.open()
    await until(lambda: len(house.home.asked) >= 3)

    assert (await house.review({"verdict": "admit"}))[0] == 200
    assert house.host.starts == 1
    # And it is not asked in a hot loop.
    asked = len(house.home.asked)
    await asyncio.sleep(1)
    assert len(house.home.asked) - asked <= 10


@pytest.mark.spec("S10")
async def test_a_home_plane_with_a_certificate_of_somebody_else_gets_no_token(
    house: House,
) -> None:
    house.home.show(Authority("impostor").issue())
    await house.open()

    await asyncio.sleep(1)

    assert house.home.asked == []
    assert (await house.review({"verdict": "admit"}))[0] == 200


async def test_a_client_that_never_ends_its_request_is_not_waited_for(
    house: House,
) -> None:
    house.host = house.build(read_within=timedelta(seconds=0.2))
    await house.open()

    async def trickle() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    assert (await house.review(body=trickle()))[0] == 408


async def test_kopf_that_ends_by_itself_is_started_again_with_back_off(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.home.speaks_garbage = True
    house.host.start()
    await until(lambda: house.host.starts == 2)  # kopf gives its left-over tasks 5 s before it ends
    house.home.speaks_garbage = False

    await until(lambda: house.host.find_unready() is None)

    assert (await house.review())[0] == 200
    restarts = [record for record in caplog.records if record.message == "Restarting front door"]
    assert restarts
    assert all(record.levelname == "WARNING" for record in restarts)


async def test_kopf_does_not_complain_about_the_thread_we_gave_it(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    await house.open()

    assert [record.message for record in caplog.records if record.levelname != "DEBUG"] == []


async def test_a_stop_while_kopf_waits_to_be_restarted_is_quick(house: House) -> None:
    is_broken = False

    def register(registry: kopf.OperatorRegistry) -> None:
        if is_broken:
            raise ValueError("the front door broke later")
        house.door.register(registry)

    house.host = house.build(register)
    is_broken = True
    house.host.start()
    await until(lambda: house.host.starts >= 2)

    async with asyncio.timeout(1):
        await house.host.stop()


async def test_a_front_door_that_is_broken_by_itself_is_told_at_once(house: House) -> None:
    def register(_: kopf.OperatorRegistry) -> None:
        raise ValueError("the front door is broken")

    with pytest.raises(ValueError, match="is broken"):
        house.build(register)


async def test_a_stop_right_after_the_start_is_heard(house: House) -> None:
    house.host.start()

    async with asyncio.timeout(5):
        await house.host.stop()


async def test_stopping_what_was_never_started_is_nothing(house: House) -> None:
    await house.host.stop()


@pytest.mark.parametrize(
    "decorate",
    [kopf.on.event, kopf.on.create, kopf.on.update, kopf.daemon, kopf.index],
    ids=["event", "create", "update", "daemon", "index"],
)
def test_handlers_that_would_watch_objects_are_refused(decorate: Callable[..., Any]) -> None:
    registry = kopf.OperatorRegistry()

    async def react(**_: object) -> None: ...

    decorate("compute.datumapis.com", "v1alpha", "workloads", registry=registry)(react)
    with pytest.raises(InvariantError, match="kopf handlers in"):
        check_registry(registry)


def test_settings_are_pinned() -> None:
    settings = build_settings(None)

    assert settings.posting.enabled is False
    assert settings.peering.standalone is True
    assert settings.scanning.disabled is True
    assert settings.process.ultimate_exiting_timeout is None
    assert settings.admission.managed is None


async def test_discovery_cannot_take_back_what_was_told() -> None:
    workloads = kopf.Resource("compute.datumapis.com", "v1alpha", "workloads")
    insights = told_insights([WORKLOAD])

    insights.webhook_resources.difference_update({workloads})
    insights.webhook_resources.update({kopf.Resource("other", "v1", "things")})

    assert insights.webhook_resources == {workloads}
    assert insights.ready_resources.is_set()
