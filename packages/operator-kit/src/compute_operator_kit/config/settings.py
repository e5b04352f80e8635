"""Models of the configuration sections that both operators share.

Settings are read once, at the start; an unknown key, a wrong type or a value out of range stops the
process, so that a typo does not become a default. Every field has a default, so that one wrong
value does not hide other problems; a required field is a rule. `loader.py` reads the file.
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
from typing_extensions import override

from compute_operator_kit.core.durations import format_duration, parse_duration

API_VERSION: Final = "apiserver.config.datumapis.com/v1alpha1"
OFF: Final = "0"  # the bind address of a server that is off, as in controller-runtime


def _parse_setting(value: object) -> object:
    if isinstance(value, timedelta):  # from code, not from a file
        return value
    if not isinstance(value, str):
        raise ValueError("expected a duration such as 15s, 10m or 200ms, as text")
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
# Of a HorizontalPodAutoscaler, which takes whole seconds up to an hour.
Stabilization: TypeAlias = Annotated[
    timedelta, BeforeValidator(_parse_setting), between(timedelta(), timedelta(hours=1))
]
# 0 turns deferring off; more than a few seconds would show users an outdated status.
StatusSettle: TypeAlias = Annotated[
    timedelta, BeforeValidator(_parse_setting), between(timedelta(), timedelta(seconds=5))
]


def zero_or_between(shortest: timedelta, longest: timedelta) -> AfterValidator:
    """Zero switches it off; any other value is within these bounds."""

    def check(value: timedelta) -> timedelta:
        if value and not shortest <= value <= longest:
            low, high = format_duration(shortest), format_duration(longest)
            text = format_duration(value)
            raise ValueError(f"expected 0s, or between {low} and {high}, found {text}")
        return value

    return AfterValidator(check)


# Of the Lease of a cell: in whole seconds, because a Lease has no smaller unit.
Heartbeat: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_parse_setting),
    zero_or_between(timedelta(seconds=5), timedelta(seconds=60)),
]
# How long a cell may stay unheard; more than 10 minutes would show users an outdated status.
UnreachableAfter: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(_parse_setting),
    zero_or_between(timedelta(seconds=5), timedelta(minutes=10)),
]


@dataclass(frozen=True, slots=True)
class Bind:
    """Host and port of a server; an empty host means all addresses of the machine."""

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
    url = urlsplit(text)
    if text and (url.scheme not in {"http", "https"} or not url.hostname or url.username):
        raise ValueError("expected an http or https URL without credentials")
    return text


BindAddress: TypeAlias = Annotated[str, AfterValidator(_check_bind_address)]
Endpoint: TypeAlias = Annotated[str, AfterValidator(_check_endpoint)]
Networking: TypeAlias = Literal["auto", "on", "off"]
Switch: TypeAlias = Literal["off", "on"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65535)]
# The name of a file in a directory; a path could leave the mounted directory.
FileName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,253}$")]


class Section(BaseModel):
    """Base of all sections: camelCase keys, no coercion, no unknown keys, immutable."""

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
    # The CAs of client certificates, in the same directory; "": clients need none.
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
    """A condition on several fields; not checked if one of them is wrong by itself."""

    fields: tuple[str, ...]  # paths as in the file; a problem is reported at the first
    check: Callable[[Root], str | None]


class Root(Section):
    """The common configuration of operators; a subclass adds its own sections and rules.

    `kind` and `apiVersion` are checked by the loader and are not fields. Each field of a subclass
    needs a default.
    """

    KIND: ClassVar[str] = ""

    metrics_server: MetricsServerSettings = MetricsServerSettings()
    health: HealthSettings = HealthSettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    clients: ClientsSettings = ClientsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def rules(cls) -> Iterable[Rule]:
        """The rules of the configuration; a subclass adds its own."""
        return SHARED_RULES

    def enabled(self) -> Iterable[str]:
        """One line per part that this configuration enables or leaves off, for `check-config`."""
        election = self.leader_election
        lease = f"Lease in {election.namespace or 'the namespace of the pod'}"
        yield f"leader election: {f'on, {lease}' if election.enabled else 'off, one replica only'}"
        scheme = "HTTPS" if self.metrics_server.secure_serving else "HTTP"
        yield f"metrics: {_shown(self.metrics_server.bind_address, scheme)}"
        yield f"probes: {_shown(self.health.bind_address, 'HTTP')}"
        # Without path and user: both may hold a secret.
        traces = urlsplit(self.telemetry.otlp_endpoint).netloc.rpartition("@")[2]
        what = "traces and metrics" if self.telemetry.otlp_metrics else "traces"
        yield f"telemetry: {f'{what} to {traces}' if traces else 'no traces'}"

    def configured_files(self) -> Iterable[tuple[str, Path]]:
        """All files of the configuration with their field; they must exist at the start."""
        if self.metrics_server.bind and self.metrics_server.secure_serving:
            yield "metricsServer.tls", self.metrics_server.tls.certificate
            yield "metricsServer.tls", self.metrics_server.tls.key


def _shown(address: str, scheme: str) -> str:
    return "off" if address == "0" else f"{scheme} on {address}"


class FederatedRoot(Root):
    """The configuration of an operator with a hub or without one.

    `federation` and `workers` have different keys in each operator and are declared by the
    subclass.
    """

    networking: Networking = "auto"
    referenced_data: Switch = "off"

    @property
    def delivers_data(self) -> bool:
        """Whether Instances wait for the ConfigMaps and Secrets that their template names."""
        return self.referenced_data == "on"

    @property
    @abstractmethod
    def hub(self) -> FederationSettings:
        """The section `federation` of the operator."""

    @classmethod
    @override
    def rules(cls) -> Iterable[Rule]:
        return (*HUB_RULES, *super().rules())

    @override
    def enabled(self) -> Iterable[str]:
        hub = f"hub of {self.hub.kubeconfig_path}" if self.hub.mode == "karmada" else "no hub"
        yield f"federation: {self.hub.mode}, {hub}"
        election, *others = super().enabled()
        yield election
        yield f"networking: {self.networking}"
        if self.delivers_data:
            yield "referenced data: on"
        yield from others

    @override
    def configured_files(self) -> Iterable[tuple[str, Path]]:
        if self.hub.kubeconfig_path:
            yield "federation.kubeconfigPath", Path(self.hub.kubeconfig_path)
        yield from super().configured_files()


def _hub_is_configured(root: Root) -> str | None:
    if not isinstance(root, FederatedRoot):
        return None
    federation = root.hub
    if federation.mode == "karmada" and not federation.kubeconfig_path:
        return "is required with federation.mode karmada"
    if federation.mode == "none" and federation.kubeconfig_path:
        return "is refused with federation.mode none"
    return None


def _hub_context_needs_a_hub(root: Root) -> str | None:
    if isinstance(root, FederatedRoot) and root.hub.mode == "none" and root.hub.context:
        return "is refused with federation.mode none"
    return None


def _retries_fit_the_deadline(root: Root) -> str | None:
    election = root.leader_election
    if election.retry_period < election.renew_deadline:
        return None
    return "must be shorter than leaderElection.renewDeadline"


def _deadline_fits_the_lease(root: Root) -> str | None:
    election = root.leader_election
    if election.renew_deadline < election.lease_duration:
        return None
    return "must be shorter than leaderElection.leaseDuration"


def _lease_is_whole_seconds(root: Root) -> str | None:
    # A Lease has leaseDurationSeconds: a fraction would be cut, and other candidates would wait
    # less than the holder expects.
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


HUB_RULES: Final = (
    Rule(("federation.kubeconfigPath", "federation.mode"), _hub_is_configured),
    Rule(("federation.context", "federation.mode"), _hub_context_needs_a_hub),
)
SHARED_RULES: Final = (
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
