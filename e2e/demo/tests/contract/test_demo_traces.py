"""Both operators, installed as in their images, send the spans of one Workload to a collector."""

from __future__ import annotations

import http.server
import json
import re
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from typing_extensions import override

from compute_api_types.wire import JsonObject
from e2e.backends.real import programs
from e2e.demo import environment as demo_environment
from e2e.demo.backend import CELLS, PROJECT_NAMESPACES, UserClient
from e2e.demo.environment import EmbeddedEnvironment
from e2e.harness.access.waiting import until
from e2e.harness.deploy.shipped import merge_over, shipped_configuration
from e2e.world.documents import a_placement, a_workload
from e2e.world.kinds import WORKLOAD
from e2e.world.objects import condition_of
from e2e.world.port import MANAGEMENT

PLACE = PROJECT_NAMESPACES[0]
DEPLOYMENT = "web-us-dfw"
INSTANCE = f"{DEPLOYMENT}-0"


class Collector(http.server.ThreadingHTTPServer):
    """Receives OTLP over HTTP and keeps the names of spans and metrics by pod."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.resources: dict[str, dict[str, str]] = {}
        self.spans: dict[str, list[Span]] = defaultdict(list)
        self.metrics: dict[str, set[str]] = defaultdict(set)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take_traces(self, body: bytes) -> None:
        for one in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = {item.key: item.value.string_value for item in one.resource.attributes}
            pod = resource["k8s.pod.name"]
            self.resources[pod] = resource
            self.spans[pod] += [span for scope in one.scope_spans for span in scope.spans]

    def take_metrics(self, body: bytes) -> None:
        for one in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            resource = {item.key: item.value.string_value for item in one.resource.attributes}
            names = {metric.name for scope in one.scope_metrics for metric in scope.metrics}
            self.metrics[resource["k8s.pod.name"]] |= names

    def names_seen(self, pod: str) -> set[tuple[str, str]]:
        """Controller and object of every reconcile span of this pod."""
        return {
            (span.name.removeprefix("reconcile "), item.value.string_value)
            for span in self.spans[pod]
            if span.name.startswith("reconcile ")
            for item in span.attributes
            if item.key == "compute.name"
        }


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        collector = self.server
        assert isinstance(collector, Collector)
        take = {"/v1/traces": collector.take_traces, "/v1/metrics": collector.take_metrics}
        take[self.path](body)
        self.send_response(200)
        self.end_headers()

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Suppresses the access log."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Our wheels with the versions that the images' locks pin, one environment per operator."""
    return programs.of_wheels(tmp_path_factory.mktemp("as-in-images"))


def _no_progress(done: int, total: int, what: str) -> None:
    """Progress, which a test does not show."""


async def _is_ready(project: UserClient) -> bool:
    workloads = await project.list(WORKLOAD)
    return [condition_of(one, "Ready").status for one in workloads] == ["True"]


async def test_one_workload_is_traced_by_both_operators_as_their_images_install_them(
    collector: Collector, installed: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_environment, "shipped_configuration", _with_all_traces)
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
    async with EmbeddedEnvironment(
        _no_progress, operators=installed, environment=environment
    ) as demo:
        project = UserClient(demo, PLACE.project, PLACE.namespace)
        await demo.set_grant(PLACE.project, 10)
        await project.create(a_workload("web", a_placement("us", "DFW", replicas=1)))
        await until("web to be Ready", lambda: _is_ready(project), check=demo.check)
        lines = _lines_of(demo.logs, MANAGEMENT)
    # Operators send the remaining spans when they stop.
    cell = CELLS[0].name
    assert {("workload", "web"), ("federation", DEPLOYMENT)} <= collector.names_seen(MANAGEMENT)
    assert {("deployment", DEPLOYMENT), ("instance", INSTANCE)} <= collector.names_seen(cell)
    wanted = {
        MANAGEMENT: "compute-management-operator",
        cell: "compute-cell-operator",
    }
    for pod, service in wanted.items():
        resource = collector.resources[pod]
        assert resource["service.name"] == service
        assert resource["service.instance.id"].startswith(f"{pod}_")
        assert resource["service.namespace"] == resource["k8s.namespace.name"] == "compute-system"
        assert {"compute_build_info", "controller_runtime_reconcile_time_seconds"} <= (
            collector.metrics[pod]
        )
    sent = {span.trace_id.hex() for span in collector.spans[MANAGEMENT]}
    logged = {line["trace_id"] for line in lines if "trace_id" in line}
    assert logged
    assert logged <= sent


def _with_all_traces(folder: str, name: str) -> JsonObject:
    overrides: JsonObject = {"telemetry": {"traceSampleRatio": 1.0, "otlpMetrics": True}}
    return merge_over(shipped_configuration(folder, name), overrides)


def _lines_of(logs: Path, operator: str) -> list[dict[str, str]]:
    (path,) = logs.glob(f"*operator-{operator}*")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line[:1] == "{"]


@pytest.mark.parametrize("program", [programs.MANAGEMENT, programs.CELL])
def test_what_an_image_installs_has_the_exporter_and_imports_it_only_for_an_endpoint(
    installed: dict[str, Path], program: str
) -> None:
    package = program.replace("-", "_")
    code = f"import sys, {package}.__main__\nprint('opentelemetry.exporter.otlp' in sys.modules)\n"
    code += "from compute_operator_kit.config.optional_extras import find_missing_exporter\n"
    code += "print(repr(find_missing_exporter()))"
    python = installed[program].parent / "python"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert re.findall(r"\S+", done.stdout) == ["False", "''"]
