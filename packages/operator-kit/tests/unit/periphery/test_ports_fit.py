"""What is made at the edge fits the ports of the hot path: the type checkers read this, and so does
pytest.
"""

from __future__ import annotations

from pathlib import Path

from compute_kubeconfig.access import Access
from compute_kubeconfig.credentials import FileCredentials
from compute_operator_kit.apply.context import EventRecorder as RecorderPort
from compute_operator_kit.apply.context import Leadership
from compute_operator_kit.client.interface import AlreadyExists, KubeClient
from compute_operator_kit.client.rest import Credentials
from compute_operator_kit.client.transport.aiohttp import Tls
from compute_operator_kit.config.settings import TelemetrySettings
from compute_operator_kit.controller.reconcile import Spans
from compute_operator_kit.core.json import JsonMapping
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.process.leader import LEASE, Candidacy, Election, Leases
from compute_operator_kit.process.metrics_server import Reviewer
from compute_operator_kit.telemetry.events import EventClient, EventSink, EventSource
from compute_operator_kit.telemetry.opentelemetry import MetricsExporter, build_tracing
from compute_operator_kit.telemetry.otlp import build_resource
from compute_operator_kit.testing.certificates import Authority
from compute_operator_kit.testing.fakes import FakeClock, FakeMetrics, FixedRandom


def use_as_ports(kube: KubeClient) -> tuple[Leases, EventClient, Reviewer]:
    """One plane's port serves the Lease, the recorder and the guard of the metrics."""
    return kube, kube, kube


def test_metrics_and_traces_fit_their_ports() -> None:
    measures: MetricsPort = MetricsExporter("x", "1").measures
    spans: Spans = build_tracing(TelemetrySettings(), build_resource("x", "1"))

    measures.count("certwatcher_read_certificate_total")
    with spans.reconcile("c", ObjectKey(PlaneName("home"), LEASE, "n", "l")) as span:
        span.set_outcome("success")


class NoLeases:
    """A plane that gets no request."""

    async def get(self, key: ObjectKey) -> Absent:
        raise AssertionError(key)

    async def create(self, key: ObjectKey, body: JsonMapping) -> AlreadyExists:
        raise AssertionError(key, body)

    async def update(self, key: ObjectKey, body: JsonMapping) -> Absent:
        raise AssertionError(key, body)


def test_an_election_is_a_leadership_and_leads_nothing_by_itself() -> None:
    key = ObjectKey(PlaneName("home"), LEASE, "n", "l")
    leadership: Leadership = Election(
        NoLeases(),
        Candidacy(key, "me"),
        clock=FakeClock(),
        random=FixedRandom(),
        measures=FakeMetrics(),
    )

    assert not leadership.is_leading


def test_a_recorder_takes_intents() -> None:
    recorder: RecorderPort = EventSink(lambda _: None, EventSource("c", "i"), FakeClock())

    assert recorder is not None


async def test_credentials_give_headers_and_tls(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    access = Access("https://hub", ca=(tmp_path / "ca.crt").read_bytes(), token=b"t")
    credentials = FileCredentials(lambda: access, FakeClock())
    port: Credentials = credentials
    tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)

    assert await port.headers() == {"Authorization": "Bearer t"}
    assert await port.refresh() is False
    assert tls.context() is credentials.ssl_context
