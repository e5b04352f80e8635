"""kopf in its thread, in real time: sockets, TLS, and no API server but its own discovery."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
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
from typing_extensions import override

from compute_management_operator import admission
from compute_management_operator.admission.host.discovery import build_discovery, serve_discovery
from compute_management_operator.admission.host.kopf_host import KopfHost, Register, build_settings
from compute_management_operator.admission.host.logs import tame_kopf_logs
from compute_management_operator.admission.host.server import (
    READ_WITHIN,
    AdmissionServer,
    Webhook,
    admission_refusal,
)
from compute_management_operator.admission.webhook import PATH
from compute_management_operator.planes import WORKLOAD
from compute_operator_kit.config.settings import Bind
from compute_operator_kit.core.json import encode
from compute_operator_kit.core.metrics import NoMetrics
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.process.certificates import ServingCertificate
from compute_operator_kit.process.probes import ProbeServer
from compute_operator_kit.testing.certificates import Authority

SOON = 20.0


def free_port() -> int:
    """A free port below the range of client ports, from which any client could take it."""
    while True:
        port = SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


async def until(condition: Callable[[], bool], longest: float = SOON) -> None:
    async with asyncio.timeout(longest):
        while not condition():  # noqa: ASYNC110  # the condition changes in another thread
            await asyncio.sleep(0.02)


class Handlers:
    """Handlers as an operator registers them, with counts of their calls."""

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

        @kopf.on.validate(
            WORKLOAD.group, WORKLOAD.version, WORKLOAD.plural, id=PATH, registry=registry
        )
        async def validate(spec: kopf.Spec, **_: object) -> None:
            review(dict(spec))


def review(spec: dict[str, Any]) -> None:
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


class AdvancedClock(SystemClock):
    """The machine's clock, which can be put ahead."""

    ahead = timedelta()

    @override
    def monotonic(self) -> timedelta:
        return super().monotonic() + self.ahead


class Served:
    """A host with its webhook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority("webhook")
        self.port = free_port()
        self.certificate = ServingCertificate(
            "webhook",
            *self.authority.issue().write(folder),
            clock=SystemClock(),
            measures=NoMetrics(),
        )
        self.clock = AdvancedClock()
        self.handlers = Handlers()
        self.host = self.build()

    def build(
        self, register: Register | None = None, read_within: timedelta = READ_WITHIN
    ) -> KopfHost:
        return KopfHost(
            register or self.handlers.register,
            self.webhook(read_within),
            clock=self.clock,
            random=Random(1),  # noqa: S311  # jitter, not a secret
            measures=NoMetrics(),
        )

    def webhook(self, read_within: timedelta = READ_WITHIN) -> Webhook:
        bind = Bind("127.0.0.1", self.port)
        return Webhook(bind, self.certificate, [PATH], [WORKLOAD], read_within)

    async def open(self) -> None:
        self.host.start()
        await until(lambda: self.host.find_unready() is None)

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
    workload = {"metadata": {"name": "web", "namespace": "team-a", "uid": "u"}, "spec": spec}
    request = {
        "uid": "review-1",
        "resource": {
            "group": "compute.datumapis.com",
            "version": "v1alpha",
            "resource": "workloads",
        },
        "operation": operation,
        "userInfo": {"username": "alice"},
        "object": workload,
        "oldObject": workload if operation == "UPDATE" else None,
    }
    return encode(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    )


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    served = Served(tmp_path)
    yield served
    await served.host.stop()


async def test_admission_is_served_over_tls_with_the_full_answer_of_the_handler(
    served: Served,
) -> None:
    await served.open()

    status, answer = await served.review({"verdict": "admit"})
    assert status == 200
    assert answer["response"] == {"uid": "review-1", "allowed": True}

    status, answer = await served.review({"verdict": "refuse"})
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
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    await served.open()

    await served.review({"verdict": "refuse"})

    assert [record for record in caplog.records if "invalid" in record.getMessage()] == []


async def test_an_error_of_ours_refuses_without_its_text_and_is_logged_as_an_error(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    await served.open()

    status, answer = await served.review({"verdict": "break"})

    assert [record.levelname for record in caplog.records if record.exc_info] == ["ERROR"]

    assert status == 200
    assert answer["response"]["allowed"] is False
    assert answer["response"]["status"]["code"] == 500
    assert "c4n4ry" not in str(answer)


async def test_what_is_no_review_of_ours_is_refused_and_never_admitted(served: Served) -> None:
    await served.open()

    assert (await served.review(path="validate-something-else"))[0] == 404
    assert (await served.review(path=""))[0] == 404
    assert (await served.review(body=b"{"))[0] == 400
    assert (await served.review(body=b"[]"))[0] == 400
    assert (await served.review(body=b'{"request": {"uid": "x"}}'))[0] == 400
    assert (await served.review(content_type="text/plain"))[0] == 415
    assert (await served.review(body=b" " * (3 * 1024 * 1024 + 1)))[0] == 413
    assert (await served.review({"verdict": "admit"}))[0] == 200


@pytest.mark.parametrize("depth", [130, 900, 5000])
@pytest.mark.spec("AT-21")
async def test_a_review_that_is_too_deep_is_refused_with_its_reason(
    served: Served, depth: int
) -> None:
    await served.open()
    deep = b'{"a":' + b"[" * depth + b"]" * depth + b"}"

    status, reason = await served.review(body=deep)

    assert (status, reason) == (400, "decoding JSON: nested deeper than 128 levels")
    assert (await served.review({"verdict": "admit"}))[0] == 200


async def test_a_review_of_two_large_objects_is_read(served: Served) -> None:
    await served.open()
    spec = {"text": "x" * 1_400_000}

    status, answer = await served.review(body=an_admission_review(spec, "UPDATE"))

    assert status == 200
    assert answer["response"]["allowed"] is True


async def test_kopf_keeps_no_record_of_what_it_admits(served: Served) -> None:
    await served.open()
    for number in range(20):
        body = an_admission_review({}, "UPDATE").replace(b'"uid":"u"', b'"uid":"u-%d"' % number)
        assert (await served.review(body=body))[0] == 200

    gc.collect()
    kept = [one for one in gc.get_objects() if type(one).__name__ == "ResourceMemory"]
    assert len(kept) <= 1  # the last one may still be in use


@pytest.mark.spec("S10")
async def test_a_rotated_certificate_is_presented_on_the_same_port(served: Served) -> None:
    await served.open()
    rotated = Authority("rotated")
    assert (await served.review())[0] == 200

    rotated.issue().write(served.folder)
    assert served.certificate.reload() is True

    assert (await served.review(trusted=rotated))[0] == 200
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await served.review()
    assert served.host.starts == 1


async def test_readiness_follows_the_bound_port(served: Served) -> None:
    probes = ProbeServer(Bind("127.0.0.1", 0))
    probes.healthy.add("front-door", served.host.find_unhealthy)
    probes.ready.add("webhook", served.host.find_unready)
    await probes.start()

    async def ask(path: str) -> int:
        url = f"http://127.0.0.1:{probes.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status

    assert await ask("/healthz") == 200
    assert await ask("/readyz") == 503

    await served.open()

    assert await ask("/readyz") == 200
    await served.host.stop()
    assert await ask("/readyz") == 503
    await probes.stop()


async def test_a_loop_that_hangs_fails_liveness(served: Served) -> None:
    await served.open()
    assert served.host.find_unhealthy() is None

    # As if the loop had not run for that long.
    served.clock.ahead += timedelta(seconds=11)

    assert served.host.find_unhealthy() == "event loop of the front door does not answer"
    await until(lambda: served.host.find_unhealthy() is None)


async def test_the_thread_runs_start_up_and_clean_up_and_leaves_nothing(served: Served) -> None:
    before = threading.active_count()
    await served.open()
    assert served.handlers.began == 1
    assert served.handlers.threads == {"kopf"}

    await served.host.stop()

    assert served.handlers.ended == 1
    assert threading.active_count() == before
    with pytest.raises(aiohttp.ClientConnectorError):
        await served.review()


async def test_a_cancelled_background_task_ends_the_thread(served: Served) -> None:
    before = threading.active_count()
    running = asyncio.create_task(served.host.run())
    await until(lambda: served.host.find_unready() is None)

    running.cancel()
    await asyncio.wait({running})

    assert running.cancelled()
    assert served.handlers.ended == 1
    assert threading.active_count() == before


async def test_a_client_that_never_ends_its_request_is_not_waited_for(served: Served) -> None:
    served.host = served.build(read_within=timedelta(seconds=0.2))
    await served.open()

    async def trickle() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    assert (await served.review(body=trickle()))[0] == 408


async def test_kopf_that_ends_by_itself_is_started_again_with_back_off(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", served.port)):
        served.host.start()
        await until(lambda: served.host.starts == 2)

    await until(lambda: served.host.find_unready() is None)

    assert (await served.review())[0] == 200
    restarts = [record for record in caplog.records if record.message == "Restarting front door"]
    assert restarts
    assert all(record.levelname == "WARNING" for record in restarts)


async def test_kopf_does_not_complain_about_the_thread_we_gave_it(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    await served.open()

    assert [record.message for record in caplog.records if record.levelname != "DEBUG"] == []


async def test_a_stop_while_kopf_waits_to_be_restarted_is_quick(served: Served) -> None:
    is_broken = False

    def register(registry: kopf.OperatorRegistry) -> None:
        if is_broken:
            raise ValueError("the handlers broke later")
        served.handlers.register(registry)

    served.host = served.build(register)
    is_broken = True
    served.host.start()
    await until(lambda: served.host.starts >= 2)

    async with asyncio.timeout(1):
        await served.host.stop()


async def test_handlers_that_cannot_be_registered_fail_at_once(served: Served) -> None:
    def register(_: kopf.OperatorRegistry) -> None:
        raise ValueError("the handlers are broken")

    with pytest.raises(ValueError, match="are broken"):
        served.build(register)


async def test_a_stop_right_after_the_start_is_heard(served: Served) -> None:
    served.host.start()

    async with asyncio.timeout(5):
        await served.host.stop()


async def test_stopping_what_was_never_started_is_nothing(served: Served) -> None:
    await served.host.stop()


# --- discovery ------------------------------------------------------------------------------------


async def test_a_handler_that_would_watch_objects_is_never_called(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    def register(registry: kopf.OperatorRegistry) -> None:
        served.handlers.register(registry)

        @kopf.on.event(WORKLOAD.group, WORKLOAD.version, WORKLOAD.plural, registry=registry)
        async def react(**_: object) -> None: ...

    served.host = served.build(register)
    await served.open()

    assert (await served.review())[0] == 200
    assert any(
        "Non-watchable resources will not be served" in record.message for record in caplog.records
    )


def test_discovery_has_the_admitted_kinds_and_no_verb() -> None:
    documents = build_discovery([WORKLOAD])

    assert documents["/api"]["versions"] == []
    assert documents["/apis"]["groups"] == [
        {
            "name": "compute.datumapis.com",
            "versions": [{"groupVersion": "compute.datumapis.com/v1alpha", "version": "v1alpha"}],
            "preferredVersion": {
                "groupVersion": "compute.datumapis.com/v1alpha",
                "version": "v1alpha",
            },
        }
    ]
    assert documents["/apis/compute.datumapis.com/v1alpha"]["resources"] == [
        {
            "name": "workloads",
            "singularName": "workload",
            "kind": "Workload",
            "namespaced": True,
            "verbs": [],
        }
    ]


async def test_discovery_is_served_on_a_loopback_address_while_kopf_runs() -> None:
    async with serve_discovery([WORKLOAD]) as url, aiohttp.ClientSession() as session:
        assert url.startswith("http://127.0.0.1:")
        async with session.get(f"{url}/apis") as answer:
            assert answer.status == 200
        async with session.get(f"{url}/version") as answer:
            assert answer.status == 404


def test_no_private_module_of_kopf_is_imported() -> None:
    folder = Path(admission.__file__).parent
    sources = {path.name: path.read_text("utf-8") for path in folder.rglob("*.py")}
    assert "kopf_host.py" in sources
    assert [name for name, text in sources.items() if "kopf._" in text] == []


def test_settings_are_pinned(tmp_path: Path) -> None:
    served = Served(tmp_path)
    server = AdmissionServer(served.webhook(), served.clock, NoMetrics())

    settings = build_settings(server)

    assert settings.posting.enabled is False
    assert settings.peering.standalone is True
    assert settings.scanning.disabled is True
    assert settings.process.ultimate_exiting_timeout is None
    assert settings.admission.managed is None
    assert settings.admission.server is server


# --- logs -----------------------------------------------------------------------------------------


def test_troubles_that_kopf_retries_are_no_errors(caplog: pytest.LogCaptureFixture) -> None:
    tame_kopf_logs()

    logging.getLogger("kopf._core.reactor.running").error("Request attempt failed; will retry")
    logging.getLogger("compute.test").error("Ours")

    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]


def test_progress_of_kopf_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tame_kopf_logs()

    logging.getLogger("kopf.activities").info("Initial authentication has been initiated.")

    assert caplog.records == []
