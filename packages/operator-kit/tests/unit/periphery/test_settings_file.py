from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, Literal

import pytest
from typing_extensions import override

from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.loader import (
    Command,
    Verb,
    build_parser,
    check_files,
    load_settings,
    read_command,
    validate_settings,
)
from compute_operator_kit.config.settings import (
    Bind,
    FederatedRoot,
    FederationSettings,
    Root,
    Rule,
    Section,
    SweepInterval,
    WebhookServerSettings,
    WorkersSettings,
    parse_bind_address,
)
from compute_operator_kit.core.json import JsonObject


class QuotaSettings(Section):
    mode: Literal["enforce", "disabled"] = "enforce"
    sweep_interval: SweepInterval = timedelta(minutes=10)


class SweepingFederation(FederationSettings):
    sweep_interval: SweepInterval = timedelta(minutes=10)


def _quota_needs_federation(root: Root) -> str | None:
    assert isinstance(root, ExampleSettings)
    if root.federation.mode == "none" and root.quota.mode == "enforce":
        return "is refused with federation.mode none"
    return None


class ExampleSettings(FederatedRoot):
    """A root as an operator composes it."""

    KIND: ClassVar[str] = "ExampleOperator"

    federation: SweepingFederation = SweepingFederation()
    quota: QuotaSettings = QuotaSettings()
    workers: WorkersSettings = WorkersSettings()
    webhook_server: WebhookServerSettings | None = None

    @property
    @override
    def hub(self) -> FederationSettings:
        return self.federation

    @classmethod
    @override
    def rules(cls) -> Iterable[Rule]:
        yield from super().rules()
        yield Rule(("quota.mode", "federation.mode"), _quota_needs_federation)


HEADER: JsonObject = {
    "apiVersion": "apiserver.config.datumapis.com/v1alpha1",
    "kind": "ExampleOperator",
}
HUB: JsonObject = {"federation": {"kubeconfigPath": "/etc/compute/hub/kubeconfig"}}

FULL = """
apiVersion: apiserver.config.datumapis.com/v1alpha1
kind: ExampleOperator
federation:
  mode: karmada
  kubeconfigPath: /etc/compute/hub/kubeconfig
  context: ""
  sweepInterval: 10m
quota: {mode: enforce, sweepInterval: 10m}
networking: on
webhookServer:
  host: ""
  port: 9443
  tls: {certDir: /etc/compute/webhook-certs, certName: tls.crt, keyName: tls.key}
metricsServer:
  bindAddress: ":8443"
  secureServing: true
  tls: {certDir: /etc/compute/metrics-certs, certName: tls.crt, keyName: tls.key}
health: {bindAddress: ":8081"}
leaderElection:
  {enabled: true, namespace: "", leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s}
workers: {total: 16}
clients:
  {requestTimeout: 10s, reconcileTimeout: 60s, qpsPerPlane: 200, burstPerPlane: 400,
   allowExec: false, statusSettle: 200ms}
telemetry: {logLevel: info, logFormat: json, otlpEndpoint: "", traceSampleRatio: 0.05}
"""


def problems_of(*parts: JsonObject) -> list[str]:
    document: JsonObject = {}
    for part in parts:
        document |= part
    with pytest.raises(ConfigurationError) as refused:
        validate_settings(ExampleSettings, document)
    return str(refused.value).splitlines()


def load(path: Path, *argv: str, environ: dict[str, str] | None = None) -> ExampleSettings:
    parser = build_parser("example", "1.2.3")
    command = read_command(parser.parse_args(["--server-config", str(path), *argv]), environ or {})
    return load_settings(ExampleSettings, command)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(FULL)
    return path


def test_the_file_of_the_specification_is_read(config: Path) -> None:
    settings = load(config)

    assert settings.networking == "on"
    assert settings.leader_election.lease_duration == timedelta(seconds=15)
    assert settings.clients.status_settle == timedelta(milliseconds=200)
    assert settings.metrics_server.bind == Bind("", 8443)
    assert settings.webhook_server is not None
    assert settings.webhook_server.tls.certificate == Path("/etc/compute/webhook-certs/tls.crt")


def test_defaults_are_those_of_the_specification(config: Path) -> None:
    written = load(config)
    bare = validate_settings(ExampleSettings, HEADER | HUB)

    assert (
        bare.model_copy(update={"networking": "on", "webhook_server": WebhookServerSettings()})
        == written
    )


def test_all_errors_are_told_at_once_with_the_path_of_the_field() -> None:
    document: JsonObject = {
        "apiVersion": "v1",
        "kind": "CellOperator",
        "projection": {"requireCellLabel": True},
        "federation": {"mode": "karmada", "kubeconfig_path": "/x", "sweepInterval": "1s"},
        "leaderElection": {"enabled": "true", "retryPeriod": "20s", "leaseDuration": 15},
        "metricsServer": {"bindAddress": "8443"},
        "workers": {"total": 0},
        "clients": 7,
        "telemetry": {"logLevel": "loud", "traceSampleRatio": 1.5},
    }

    assert problems_of(document) == [
        "apiVersion: must be apiserver.config.datumapis.com/v1alpha1",
        "clients: expected a mapping of keys to values",
        "federation.kubeconfigPath: is required with federation.mode karmada",
        "federation.kubeconfig_path: unknown key",
        "federation.sweepInterval: expected between 1m and 24h, found 1s",
        "kind: must be ExampleOperator",
        "leaderElection.enabled: must be a valid boolean",
        "leaderElection.leaseDuration: expected a duration such as 15s, 10m or 200ms, as text",
        "leaderElection.retryPeriod: must be shorter than leaderElection.renewDeadline",
        "metricsServer.bindAddress: expected host:port, :port, or 0 for off",
        "projection: unknown key",
        "telemetry.logLevel: must be 'debug', 'info', 'warning' or 'error'",
        "telemetry.traceSampleRatio: must be less than or equal to 1",
        "workers.total: must be greater than or equal to 1",
    ]


@pytest.mark.parametrize(
    ("section", "value", "problem"),
    [
        (
            "leaderElection",
            {"renewDeadline": "15s"},
            "leaderElection.renewDeadline: must be shorter than leaderElection.leaseDuration",
        ),
        (
            "leaderElection",
            {"leaseDuration": "15500ms"},
            "leaderElection.leaseDuration: must be whole seconds",
        ),
        (
            "clients",
            {"burstPerPlane": 100},
            "clients.burstPerPlane: must not be less than clients.qpsPerPlane",
        ),
        (
            "clients",
            {"requestTimeout": "2m"},
            "clients.requestTimeout: must not be longer than clients.reconcileTimeout",
        ),
        (
            "health",
            {"bindAddress": ":8443"},
            "health.bindAddress: is taken by metricsServer.bindAddress",
        ),
        (
            "telemetry",
            {"otlpEndpoint": "collector:4317"},
            "telemetry.otlpEndpoint: expected an http or https URL without credentials",
        ),
        (
            "webhookServer",
            {"tls": {"certName": "../x"}},
            "webhookServer.tls.certName: string should match pattern '^[A-Za-z0-9._-]{1,253}$'",
        ),
    ],
)
def test_fields_must_fit_each_other(section: str, value: JsonObject, problem: str) -> None:
    assert problems_of(HEADER, HUB, {section: value}) == [problem]


def test_a_missing_hub_is_never_a_silent_mode() -> None:
    assert problems_of(HEADER) == [
        "federation.kubeconfigPath: is required with federation.mode karmada"
    ]


def test_a_single_cluster_has_no_hub_and_no_quota() -> None:
    alone: JsonObject = {"federation": {"mode": "none", "kubeconfigPath": "/x", "context": "y"}}

    assert problems_of(HEADER, alone) == [
        "federation.context: is refused with federation.mode none",
        "federation.kubeconfigPath: is refused with federation.mode none",
        "quota.mode: is refused with federation.mode none",
    ]


def test_a_rule_is_silent_about_a_field_that_is_wrong_by_itself() -> None:
    assert problems_of(HEADER, {"federation": {"mode": "maybe"}}) == [
        "federation.mode: must be 'karmada' or 'none'"
    ]


def test_a_section_may_be_wrong_as_a_whole() -> None:
    assert problems_of(HEADER, HUB, {"leaderElection": None}) == [
        "leaderElection: expected a mapping of keys to values"
    ]


def test_no_value_of_the_file_is_repeated() -> None:
    telemetry: JsonObject = {"otlpEndpoint": "https://u:hunter2@x"}

    told = problems_of(HEADER, HUB, {"telemetry": telemetry, "networking": "hunter2"})

    assert len(told) == 2
    assert "hunter2" not in "".join(told)


def test_a_flag_beats_the_environment_which_beats_the_file(config: Path) -> None:
    environ = {
        "LOG_LEVEL": "warning",
        "FEDERATION_CONTEXT": "from-environment",
        "LEADER_ELECT": "false",
    }

    settings = load(config, "--log-level", "error", "--leader-elect", environ=environ)

    assert settings.telemetry.log_level == "error"
    assert settings.federation.context == "from-environment"
    assert settings.leader_election.enabled is True
    assert settings.federation.kubeconfig_path == "/etc/compute/hub/kubeconfig"


def test_every_override_of_the_table_reaches_its_field(config: Path) -> None:
    environ = {
        "FEDERATION_KUBECONFIG": "/hub",
        "FEDERATION_CONTEXT": "c",
        "LEADER_ELECT": "false",
        "LEADER_ELECT_NAMESPACE": "n",
        "HEALTH_PROBE_BIND_ADDRESS": "127.0.0.1:1",
        "LOG_LEVEL": "debug",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
    }
    flags = [
        "--federation-kubeconfig=/hub",
        "--federation-context=c",
        "--leader-elect=false",
        "--leader-elect-namespace=n",
        "--health-probe-bind-address=127.0.0.1:1",
        "--log-level=debug",
    ]

    for settings in (load(config, environ=environ), load(config, *flags)):
        assert settings.federation.kubeconfig_path == "/hub"
        assert settings.federation.context == "c"
        assert settings.leader_election.enabled is False
        assert settings.leader_election.namespace == "n"
        assert settings.health.bind == Bind("127.0.0.1", 1)
        assert settings.telemetry.log_level == "debug"
    assert load(config, environ=environ).telemetry.otlp_endpoint == "http://collector:4318"


def test_an_empty_variable_is_not_set_and_an_empty_flag_is(config: Path) -> None:
    config.write_text(FULL.replace('context: ""', "context: from-file"))

    assert load(config, environ={"FEDERATION_CONTEXT": ""}).federation.context == "from-file"
    assert load(config, "--federation-context", "").federation.context == ""


def test_a_bad_override_is_told_with_its_source(config: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(config, environ={"LEADER_ELECT": "maybe", "LOG_LEVEL": "loud"})

    assert str(refused.value).splitlines() == [
        "leaderElection.enabled: expected true or false (from LEADER_ELECT)",
        "telemetry.logLevel: must be 'debug', 'info', 'warning' or 'error'",
    ]


def test_the_file_may_be_named_by_the_environment(config: Path) -> None:
    parser = build_parser("example", "1.2.3")

    command = read_command(parser.parse_args([]), {"SERVER_CONFIG": str(config)})

    assert load_settings(ExampleSettings, command).networking == "on"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"a: 1\n---\nb: 1\n", "holds 2 documents, expected one"),
        (b"x" * (1 << 20 | 1), "is larger than 1 MiB"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(config: Path, content: bytes, problem: str) -> None:
    config.write_bytes(content)

    with pytest.raises(ConfigurationError) as refused:
        load(config)

    assert str(refused.value) == f"{config}: {problem}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.yaml: cannot be read: No such file"):
        load(tmp_path / "absent.yaml")


def test_no_file_at_all_is_told() -> None:
    with pytest.raises(ConfigurationError, match="--server-config: is required"):
        load_settings(ExampleSettings, Command())


def test_duplicate_keys_are_refused_with_their_line(config: Path) -> None:
    config.write_text(FULL + "networking: off\n")

    with pytest.raises(ConfigurationError, match=r"networking: line \d+: key is given twice"):
        load(config)


def test_every_configured_path_must_lead_to_a_file(tmp_path: Path) -> None:
    hub = tmp_path / "hub"
    hub.write_text("")
    files: JsonObject = {
        "federation": {"kubeconfigPath": str(hub)},
        "metricsServer": {"tls": {"certDir": str(tmp_path)}},
    }
    settings = validate_settings(ExampleSettings, HEADER | files)

    with pytest.raises(ConfigurationError) as refused:
        check_files(settings)
    assert str(refused.value).splitlines() == [
        f"metricsServer.tls: {tmp_path}/tls.crt: cannot be read: No such file or directory",
        f"metricsServer.tls: {tmp_path}/tls.key: cannot be read: No such file or directory",
    ]

    (tmp_path / "tls.crt").write_text("")
    (tmp_path / "tls.key").write_text("")
    check_files(settings)


def test_metrics_that_are_off_need_no_files() -> None:
    alone: JsonObject = {
        "federation": {"mode": "none"},
        "quota": {"mode": "disabled"},
        "metricsServer": {"bindAddress": "0"},
    }

    check_files(validate_settings(ExampleSettings, HEADER | alone))


def test_the_version_is_printed_and_nothing_else_happens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = build_parser("example", "1.2.3")

    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out == "example 1.2.3\n"


@pytest.mark.parametrize("argv", [["--no-such-flag"], ["--log-lev", "info"], ["no-such-verb"]])
def test_a_command_line_that_is_not_understood_ends_with_code_2(argv: list[str]) -> None:
    parser = build_parser("example", "1.2.3")

    with pytest.raises(SystemExit) as ended:
        parser.parse_args(argv)

    assert ended.value.code == 2


def test_an_operator_adds_verbs_of_its_own() -> None:
    def configure(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--cell", required=True)

    verb = Verb("decommission", "forget a cell", configure)
    parser = build_parser("example", "1.2.3", [verb])

    found = parser.parse_args(["decommission", "--cell", "dfw-1"])

    assert found.verb == "decommission"
    assert found.cell == "dfw-1"


@pytest.mark.parametrize(
    "argv",
    [
        ["check-config", "--server-config", "f", "--log-level", "debug"],
        ["--server-config", "f", "--log-level", "debug", "check-config"],
    ],
)
def test_flags_may_stand_before_or_after_the_verb(argv: list[str]) -> None:
    parser = build_parser("example", "1.2.3")

    command = read_command(parser.parse_args(argv), {})

    assert command.verb == "check-config"
    assert command.server_config == "f"
    assert command.given == {("telemetry", "logLevel"): ("debug", "--log-level")}


@pytest.mark.parametrize(
    ("text", "bind"),
    [
        (":8443", Bind("", 8443)),
        ("127.0.0.1:80", Bind("127.0.0.1", 80)),
        ("[::1]:80", Bind("::1", 80)),
        ("0", None),
    ],
)
def test_bind_addresses_are_read(text: str, bind: Bind | None) -> None:
    assert parse_bind_address(text) == bind


@pytest.mark.parametrize("text", ["", "8443", "::1:80", ":65536", ":-1", ":x", "host:"])
def test_what_is_no_bind_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected host:port"):
        parse_bind_address(text)
