"""The operator as a process, in real time: command line, servers, Lease, admission, stop."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from management_builders.documents import a_workload_document
from management_builders.served_planes import SCRAPER, STRANGER, ServedPlanes
from management_builders.world import a_review

from compute_api_types import labels
from compute_management_operator.__main__ import main
from compute_management_operator.admission.webhook import PATH
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object, member_text
from compute_operator_kit.testing.certificates import Authority

SOON = 40.0  # a busy machine, and a process that imports kopf
WORKLOADS = "/apis/compute.datumapis.com/v1alpha/namespaces/default/workloads"
DEPLOYMENTS = "/apis/compute.datumapis.com/v1alpha/namespaces/default/workloaddeployments"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/compute-system/leases/compute-management-operator"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Started:
    """A process, and where it listens."""

    process: subprocess.Popen[bytes]
    planes: ServedPlanes
    authority: Authority
    health: int
    metrics: int
    webhook: int

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession(connector=self._connector()) as session,
            session.get(url, headers=headers) as answer,
        ):
            return answer.status, await answer.text()

    async def review(self, review: JsonObject) -> JsonObject:
        url = f"https://127.0.0.1:{self.webhook}/{PATH}"
        async with (
            aiohttp.ClientSession(connector=self._connector()) as session,
            session.post(url, json=review) as answer,
        ):
            assert answer.status == 200
            body: JsonObject = await answer.json()
            return member_object(body, "response")

    async def post(self, body: bytes, kind: str) -> int:
        """The status of an answer to whatever is sent to the webhook."""
        url = f"https://127.0.0.1:{self.webhook}/{PATH}"
        async with (
            aiohttp.ClientSession(connector=self._connector()) as session,
            session.post(url, data=io.BytesIO(body), headers={"Content-Type": kind}) as answer,
        ):
            return answer.status

    def _connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            ssl=ssl.create_default_context(cadata=self.authority.certificate.decode())
        )

    async def has_ended(self) -> bool:
        return self.process.poll() is not None

    async def is_ready(self) -> bool:
        try:
            return (await self.get(f"http://127.0.0.1:{self.health}/readyz"))[0] == 200
        except aiohttp.ClientError:
            return False


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SOON):
        while not await is_so():  # noqa: ASYNC110 - what is waited for is another process
            await asyncio.sleep(0.05)


def start(folder: Path, planes: ServedPlanes, authority: Authority, pod: str) -> Started:
    """One process of the operator, with addresses of its own; its log is `<pod>.log`."""
    health, metrics, webhook = free_port(), free_port(), free_port()
    tls: Json = {"certDir": str(folder / "certificates")}
    settings: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": "ManagementOperator",
        "discovery": {"mode": "milo", "discoveryKubeconfigPath": str(folder / "root.yaml")},
        "federation": {"mode": "karmada", "kubeconfigPath": str(folder / "hub.yaml")},
        "webhookServer": {"host": "127.0.0.1", "port": webhook, "tls": tls},
        "metricsServer": {"bindAddress": f"127.0.0.1:{metrics}", "tls": tls},
        "health": {"bindAddress": f"127.0.0.1:{health}"},
    }
    file = folder / f"{pod}.json"
    file.write_text(json.dumps(settings))
    environ = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(folder / "root.yaml"),
        "POD_NAMESPACE": "compute-system",
        "POD_NAME": pod,
    }
    command = [sys.executable, "-m", "compute_management_operator", "--server-config", str(file)]
    with (folder / f"{pod}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, stderr=log)
    return Started(process, planes, authority, health, metrics, webhook)


def show_logs(folder: Path) -> None:
    """pytest shows them where a test failed."""
    for log in sorted(folder.glob("*.log")):
        sys.stderr.write(f"{log.name}\n{log.read_text()}")


@pytest.fixture
async def started(tmp_path: Path) -> AsyncIterator[list[Started]]:
    """Two replicas, the first of which leads."""
    (tmp_path / "certificates").mkdir()
    authority = Authority()
    authority.issue().write(tmp_path / "certificates")
    planes = await ServedPlanes.start(tmp_path)
    replicas: list[Started] = []
    try:
        for pod in ("pod-1", "pod-2"):
            replicas.append(start(tmp_path, planes, authority, pod))
            await until(replicas[-1].is_ready)
            await until(lambda: _has_holder(planes))
        yield replicas
    finally:
        for one in replicas:
            one.process.kill()
            one.process.wait()
        await planes.close()
        show_logs(tmp_path)
        assert planes.witness.refused == []


async def holder(planes: ServedPlanes) -> str:
    lease = await planes.ask("root", "GET", LEASE)
    return member_text(member_object(lease, "spec"), "holderIdentity")


async def exists(planes: ServedPlanes, plane: str, path: str) -> bool:
    listed = await planes.ask(plane, "GET", path)
    return bool(member_list(listed, "items"))


@pytest.mark.spec("M-84", "M-85")
async def test_the_process_places_admits_measures_and_stops_gracefully(
    started: list[Started],
) -> None:
    leader, _ = started
    planes = leader.planes
    await planes.put("acme", WORKLOADS, a_workload_document())
    await until(lambda: exists(planes, "acme", DEPLOYMENTS))

    extra: JsonObject = {labels.PARENT_NAME_EXTRA: ["acme"]}
    moon = a_workload_document("web", {"moon": ("TYCHO",)})
    refused = await leader.review(addressed(a_review(moon, extra)))
    assert refused["allowed"] is False
    status = member_object(refused, "status")
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert member_list(member_object(status, "details"), "causes") != []
    admitted = await leader.review(addressed(a_review(a_workload_document("web"), extra)))
    assert admitted["allowed"] is True

    metrics = f"https://127.0.0.1:{leader.metrics}/metrics"
    assert (await leader.get(metrics))[0] == 401
    stranger = {"Authorization": f"Bearer {STRANGER}"}
    assert (await leader.get(metrics, stranger))[0] == 403
    code, text = await leader.get(metrics, {"Authorization": f"Bearer {SCRAPER}"})
    assert code == 200
    assert 'leader_election_master_status{name="compute-management-operator"} 1.0' in text
    assert "acme" not in text
    assert (await leader.get(f"http://127.0.0.1:{leader.health}/healthz"))[0] == 200

    leader.process.send_signal(signal.SIGTERM)
    await until(leader.has_ended)
    assert leader.process.returncode == 0
    assert not (await holder(planes)).startswith("pod-1_")


@pytest.mark.fault("E3")
async def test_a_process_that_loses_its_lease_ends_with_1(started: list[Started]) -> None:
    leader, _ = started
    stolen: JsonObject = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}}
    await leader.planes.ask("root", "PATCH", LEASE, stolen)
    await until(leader.has_ended)
    assert leader.process.returncode == 1
    assert await holder(leader.planes) == "somebody"


@pytest.mark.fault("A4")
async def test_a_follower_that_is_stopped_leaves_the_lease_to_its_holder(
    started: list[Started],
) -> None:
    _, follower = started
    follower.process.send_signal(signal.SIGTERM)
    await until(follower.has_ended)
    assert follower.process.returncode == 0
    assert (await holder(follower.planes)).startswith("pod-1_")


@pytest.mark.fault("A4")
async def test_a_leader_that_is_stopped_is_followed_at_once(started: list[Started]) -> None:
    leader, follower = started
    leader.process.send_signal(signal.SIGTERM)
    await until(leader.has_ended)
    began = asyncio.get_running_loop().time()
    await until(lambda: _is_held_by(follower.planes, "pod-2_"))
    assert asyncio.get_running_loop().time() - began < 6  # 3 s, and a busy machine
    await follower.planes.put("acme", WORKLOADS, a_workload_document())
    await until(lambda: exists(follower.planes, "acme", DEPLOYMENTS))


@pytest.mark.spec("M-86", "S11")
async def test_a_follower_answers_five_hundred_reviews_at_once(started: list[Started]) -> None:
    _, follower = started
    extra: JsonObject = {labels.PARENT_NAME_EXTRA: ["acme"]}
    wanted = [
        addressed(a_review(a_workload_document("web", {"us": (city,)}), extra))
        for city in ("DFW", "TYCHO") * 250
    ]
    answers = await asyncio.gather(*(follower.review(one) for one in wanted))
    assert [one["allowed"] for one in answers] == [True, False] * 250


NO_REVIEWS: tuple[tuple[bytes, str, int], ...] = (
    (b"{", "application/json", 400),
    (b"[" * 100_000, "application/json", 400),
    (b'{"request": 3}', "application/json", 400),
    (b"{}", "text/plain", 415),
    (b" " * (3 * 1024 * 1024 + 1), "application/json", 413),
)


@pytest.mark.spec("S11")
async def test_what_is_no_review_is_refused_and_the_next_one_is_answered(
    started: list[Started],
) -> None:
    leader, _ = started
    _, slow = await asyncio.open_connection("127.0.0.1", leader.webhook)
    slow.write(b"\x16\x03")  # a hello that never ends
    statuses = [await leader.post(body, kind) for body, kind, _ in NO_REVIEWS]
    assert statuses == [status for _, _, status in NO_REVIEWS]
    extra: JsonObject = {labels.PARENT_NAME_EXTRA: ["acme"]}
    admitted = await leader.review(addressed(a_review(a_workload_document("web"), extra)))
    assert admitted["allowed"] is True
    slow.close()
    with contextlib.suppress(ConnectionError):
        await slow.wait_closed()


def addressed(review: JsonObject) -> JsonObject:
    member_object(review, "request")["resource"] = {
        "group": "compute.datumapis.com",
        "version": "v1alpha",
        "resource": "workloads",
    }
    return review


async def _is_held_by(planes: ServedPlanes, identity: str) -> bool:
    return (await holder(planes)).startswith(identity)


async def _has_holder(planes: ServedPlanes) -> bool:
    leases = await planes.ask("root", "GET", LEASE.rpartition("/")[0])
    return bool(member_list(leases, "items")) and bool(await holder(planes))


# --- the command line -----------------------------------------------------------------------------

GOOD = f"""
apiVersion: {API_VERSION}
kind: ManagementOperator
discovery: {{mode: single}}
federation: {{mode: none}}
"""


def write(folder: Path, text: str) -> str:
    file = folder / "config.yaml"
    file.write_text(text)
    return str(file)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"], {})
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("compute-management-operator ")


def test_a_good_configuration_passes_and_nothing_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-config", "--server-config", write(tmp_path, GOOD)], {}) == 0
    stated = capsys.readouterr().out
    assert "valid, kind ManagementOperator" in stated
    assert "  admission webhook: " in stated


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        (GOOD.replace("ManagementOperator", "CellOperator"), "kind: must be ManagementOperator"),
        (GOOD + "cell: {name: dfw-1}\n", "cell: unknown key"),
        (GOOD + "quota: {mode: enforce}\n", "quota: unknown key"),
        (GOOD + "workers: {total: 2, perProject: 3}\n", "workers.perProject: must not be more"),
        (GOOD + "workers: {total: many}\n", "workers.total"),
        (GOOD.replace("none", "karmada"), "federation.kubeconfigPath: is required"),
        (GOOD.replace("single", "milo"), "federation.mode: none is refused"),
        (
            GOOD.replace("{mode: single}", "{mode: single, projectKubeconfigPath: /x}"),
            "discovery: is refused with discovery.mode single",
        ),
        (GOOD + "webhookServer: {port: 8081}\n", "webhookServer.port: is taken"),
        (GOOD + "webhookServer: {port: 0}\n", "webhookServer.port"),
        (GOOD + "clients: {statusSettle: 6s}\n", "clients.statusSettle"),
    ],
)
def test_a_bad_configuration_ends_with_2_and_names_the_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    assert main(["check-config", "--server-config", write(tmp_path, text)], {}) == 2
    assert expected in capsys.readouterr().err


def test_every_problem_is_printed_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD + "cell: {}\nworkers: {total: 0}\nnetworking: maybe\n"
    assert main(["check-config", "--server-config", write(tmp_path, text)], {}) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 3


@pytest.fixture
def _logs_as_before() -> Iterator[None]:
    """A process makes its format the only one; here there are others after it."""
    root = logging.getLogger()
    handlers, level, raises = root.handlers[:], root.level, logging.raiseExceptions
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raises


@pytest.mark.usefixtures("_logs_as_before")
def test_a_process_that_has_no_home_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD + "metricsServer: {bindAddress: '0'}\nhealth: {bindAddress: '0'}\n"
    assert main(["--server-config", write(tmp_path, text)], {}) == 2
    assert "KUBECONFIG: is not set" in capsys.readouterr().err


@pytest.mark.usefixtures("_logs_as_before")
def test_a_file_that_is_configured_and_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD + "webhookServer: {tls: {certDir: /nowhere}}\nmetricsServer: {bindAddress: '0'}\n"
    assert main(["--server-config", write(tmp_path, text)], {}) == 2
    assert "webhookServer.tls: /nowhere/tls.crt: cannot be read" in capsys.readouterr().err
