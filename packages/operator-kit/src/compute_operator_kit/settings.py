"""The configuration sections both operators share, as strict models; each operator composes its own
root of them.

Settings are read once, at start: an unknown key, a wrong type or a value out of range is a problem
with the path of its field, and `configuration.py` gathers all of them before anything starts. Every
field has a default, so that one wrong value never hides what is wrong elsewhere; what must be given
is a rule. This module reads no file, no environment and no command line.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from compute_operator_kit.durations import format_duration, parse_duration

API_VERSION: Final = "apiserver.config.datumapis.com/v1alpha1"
OFF: Final = "0"  # a bind address that serves nothing, as controller-runtime writes it


def _parse_setting(value: object) -> object:
    if isinstance(value, timedelta):  # from code; no file can hold one
        return value
    if not isinstance(value, str):
        raise ValueError(
            "expected a duration such as 15s, 10m or 200ms, as text"
        )  # pydantic gathers it
    return parse_duration(value)


def between(shortest: timedelta, longest: timedelta) -> AfterValidator:
    """A duration in a range, both ends included."""

    def check(value: timedelta) -> timedelta:
        if not shortest <= value <= longest:
            low, high = format_duration(shortest), format_duration(longest)
            raise ValueError(f"expected between {low} and {high}, found {format_duration(value)}")
        return value

    return AfterValidator(check)


Duration: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_parse_setting),
    between(timedelta(milliseconds=1), timedelta(hours=24)),
]
SweepInterval: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_parse_setting),
    between(timedelta(minutes=1), timedelta(hours=24)),
]
# 0 switches holding back off; more than a few seconds would hide the truth from users.
StatusSettle: TypeAlias = Annotated[
    timedelta, BeforeValidator(_parse_setting), between(timedelta(), timedelta(seconds=5))
]


@dataclass(frozen=True, slots=True)
class Bind:
    """Where a server listens; an empty host means every address of the machine."""

    host: str
    port: int


def parse_bind_address(text: str) -> Bind | None:
    """`:8443`, `127.0.0.1:8081` or `[::1]:8081`; `0` is None: the server is off."""
    if text == OFF:
        return None
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not is_bracketed):
        raise ValueError("expected host:port, :port, or 0 for off")
    return Bind(host.strip("[]"), int(port))


def _check_bind_address(text: str) -> str:
    parse_bind_address(text)
    return text


def _check_endpoint(text: str) -> str:
    found = urlsplit(text)
    if text and (found.scheme not in {"http", "https"} or not found.hostname or found.username):
        raise ValueError("expected an http or https URL without credentials")
    return text


BindAddress: TypeAlias = Annotated[str, AfterValidator(_check_bind_address)]
Endpoint: TypeAlias = Annotated[str, AfterValidator(_check_endpoint)]
Networking: TypeAlias = Literal["auto", "on", "off"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65535)]
# A name inside a directory: a path here would leave the mount that the directory stands for.
FileName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,253}$")]


class Section(BaseModel):
    """What every section has in common: camelCase keys, no coercion, nothing unknown, nothing
    changed later.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        strict=True,
        validate_by_alias=True,
        validate_by_name=True,
        validate_default=False,
    )


class FederationSettings(Section):
    mode: Literal["karmada", "none"] = "karmada"
    kubeconfig_path: str = ""
    context: str = ""


class TlsFiles(Section):
    cert_dir: str = ""
    cert_name: FileName = "tls.crt"
    key_name: FileName = "tls.key"

    @property
    def certificate(self) -> Path:
        return Path(self.cert_dir) / self.cert_name

    @property
    def key(self) -> Path:
        return Path(self.cert_dir) / self.key_name


class WebhookTlsFiles(TlsFiles):
    # CAs of client certificates, beside the serving certificate; "": none is asked for.
    client_ca_name: FileName | Literal[""] = Field(default="", alias="clientCAName")

    @property
    def client_ca(self) -> Path | None:
        return Path(self.cert_dir) / self.client_ca_name if self.client_ca_name else None


class WebhookServerSettings(Section):
    host: str = ""
    port: Port = 9443
    tls: WebhookTlsFiles = WebhookTlsFiles(cert_dir="/etc/compute/webhook-certs")


class MetricsServerSettings(Section):
    bind_address: BindAddress = ":8443"
    secure_serving: bool = True
    tls: TlsFiles = TlsFiles(cert_dir="/etc/compute/metrics-certs")

    @property
    def bind(self) -> Bind | None:
        return parse_bind_address(self.bind_address)


class HealthSettings(Section):
    bind_address: BindAddress = ":8081"

    @property
    def bind(self) -> Bind | None:
        return parse_bind_address(self.bind_address)


class LeaderElectionSettings(Section):
    enabled: bool = True
    namespace: str = ""
    lease_duration: Duration = timedelta(seconds=15)
    renew_deadline: Duration = timedelta(seconds=10)
    retry_period: Duration = timedelta(seconds=2)


class WorkersSettings(Section):
    total: Annotated[int, Field(ge=1, le=1024)] = 16


class ClientsSettings(Section):
    request_timeout: Duration = timedelta(seconds=10)
    reconcile_timeout: Duration = timedelta(seconds=60)
    qps_per_plane: Annotated[int, Field(ge=1, le=100_000)] = 200
    burst_per_plane: Annotated[int, Field(ge=1, le=100_000)] = 400
    allow_exec: bool = False
    status_settle: StatusSettle = timedelta(milliseconds=200)


class TelemetrySettings(Section):
    log_level: LogLevel = "info"
    log_format: Literal["json", "text"] = "json"
    otlp_endpoint: Endpoint = ""
    otlp_metrics: bool = False
    trace_sample_ratio: Annotated[float, Field(ge=0, le=1)] = 0.05


@dataclass(frozen=True, slots=True)
class Rule:
    """Something two fields must satisfy together; not asked while one of them is wrong by
    itself.
    """

    fields: tuple[str, ...]  # paths as in the file; a problem is told at the first
    check: Callable[[Root], str | None]


class Root(Section):
    """What every operator's configuration has; a subclass adds its own sections and rules.

    `kind` and `apiVersion` are checked by the loader and are no fields. Every field of a subclass
    needs a default. `federation` and `workers` have keys of their own in each operator, so the
    subclass declares them.
    """

    KIND: ClassVar[str] = ""

    networking: Networking = "auto"
    metrics_server: MetricsServerSettings = MetricsServerSettings()
    health: HealthSettings = HealthSettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    clients: ClientsSettings = ClientsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @property
    @abstractmethod
    def hub(self) -> FederationSettings:
        """The section `federation`, whichever form of it the operator has."""

    @classmethod
    def rules(cls) -> Iterable[Rule]:
        """Rules over several fields; a subclass yields these and its own."""
        return SHARED_RULES

    def configured_files(self) -> Iterable[tuple[str, Path]]:
        """Every file the configuration names, with the field that names it; all must exist at
        start.
        """
        if self.hub.kubeconfig_path:
            yield "federation.kubeconfigPath", Path(self.hub.kubeconfig_path)
        if self.metrics_server.bind and self.metrics_server.secure_serving:
            yield "metricsServer.tls", self.metrics_server.tls.certificate
            yield "metricsServer.tls", self.metrics_server.tls.key


def _hub_is_configured(root: Root) -> str | None:
    found = root.hub
    if found.mode == "karmada" and not found.kubeconfig_path:
        return "is required with federation.mode karmada"
    if found.mode == "none" and found.kubeconfig_path:
        return "is refused with federation.mode none"
    return None


def _hub_context_needs_a_hub(root: Root) -> str | None:
    found = root.hub
    if found.mode == "none" and found.context:
        return "is refused with federation.mode none"
    return None


def _retries_fit_the_deadline(root: Root) -> str | None:
    found = root.leader_election
    if found.retry_period < found.renew_deadline:
        return None
    return "must be shorter than leaderElection.renewDeadline"


def _deadline_fits_the_lease(root: Root) -> str | None:
    found = root.leader_election
    if found.renew_deadline < found.lease_duration:
        return None
    return "must be shorter than leaderElection.leaseDuration"


def _lease_is_whole_seconds(root: Root) -> str | None:
    # The Lease says leaseDurationSeconds: a fraction would be cut, and others would wait less than
    # we count on.
    if root.leader_election.lease_duration % timedelta(seconds=1):
        return "must be whole seconds"
    return None


def _burst_covers_the_rate(root: Root) -> str | None:
    if root.clients.burst_per_plane < root.clients.qps_per_plane:
        return "must not be less than clients.qpsPerPlane"
    return None


def _requests_fit_a_pass(root: Root) -> str | None:
    if root.clients.request_timeout > root.clients.reconcile_timeout:
        return "must not be longer than clients.reconcileTimeout"
    return None


def _servers_do_not_collide(root: Root) -> str | None:
    if root.health.bind and root.health.bind == root.metrics_server.bind:
        return "is taken by metricsServer.bindAddress"
    return None


def _exported_metrics_need_an_endpoint(root: Root) -> str | None:
    if root.telemetry.otlp_metrics and not root.telemetry.otlp_endpoint:
        return "needs telemetry.otlpEndpoint (OTEL_EXPORTER_OTLP_ENDPOINT does the same)"
    return None


SHARED_RULES: Final = (
    Rule(("federation.kubeconfigPath", "federation.mode"), _hub_is_configured),
    Rule(("federation.context", "federation.mode"), _hub_context_needs_a_hub),
    Rule(("leaderElection.retryPeriod", "leaderElection.renewDeadline"), _retries_fit_the_deadline),
    Rule(
        ("leaderElection.renewDeadline", "leaderElection.leaseDuration"), _deadline_fits_the_lease
    ),
    Rule(("leaderElection.leaseDuration",), _lease_is_whole_seconds),
    Rule(("clients.burstPerPlane", "clients.qpsPerPlane"), _burst_covers_the_rate),
    Rule(("clients.requestTimeout", "clients.reconcileTimeout"), _requests_fit_a_pass),
    Rule(("health.bindAddress", "metricsServer.bindAddress"), _servers_do_not_collide),
    Rule(("telemetry.otlpMetrics", "telemetry.otlpEndpoint"), _exported_metrics_need_an_endpoint),
)
