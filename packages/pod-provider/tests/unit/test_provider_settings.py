from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from provider_builders.documents import TYPE

from compute_api_types.sizes import CATALOGUE, Size
from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.loader import (
    build_parser,
    load_settings,
    read_command,
)
from compute_pod_provider.settings import PodProviderSettings

HEAD = "apiVersion: apiserver.config.datumapis.com/v1alpha1\nkind: PodProvider\n"


def load(folder: Path, text: str) -> PodProviderSettings:
    path = folder / "config.yaml"
    path.write_text(HEAD + text, "utf-8")
    parsed = build_parser("compute-pod-provider", "1").parse_args(["--server-config", str(path)])
    return load_settings(PodProviderSettings, read_command(parsed, {}))


def test_the_defaults_are_those_of_the_specification(tmp_path: Path) -> None:
    options = load(tmp_path, "").options("compute-system")
    assert options.is_federated
    assert options.is_restricted
    assert not options.ignores_virtual_machines
    assert not options.has_ephemeral_disks
    assert not options.has_network_policies
    assert options.denied_egress == ("169.254.0.0/16",)
    assert dict(options.sizes) == dict(CATALOGUE)
    assert options.grace == timedelta(seconds=30)


def test_every_setting_reaches_the_options(tmp_path: Path) -> None:
    text = f"""
scope: all
security: baseline
virtualMachine: ignore
disks: ephemeral
networkPolicy: on
network: {{denyEgress: ["10.0.0.0/8", "fd00::/8"]}}
sizes:
  {TYPE}: {{cpu: 20m, memory: 64Mi}}
  example/small: {{cpu: "0.5", memory: 1G}}
pods:
  terminationGracePeriod: 2s
  availableAfter: 500ms
  nodeSelector: {{pool: edge}}
  tolerations: [{{key: edge, operator: Exists, effect: NoSchedule}}]
  priorityClassName: low
  runtimeClassName: kata
"""
    options = load(tmp_path, text).options("here")
    assert not options.is_federated
    assert not options.is_in_scope("here")
    assert options.has_network_policies
    assert options.denied_egress == ("10.0.0.0/8", "fd00::/8")
    assert options.sizes[TYPE] == Size(20, 64)
    assert options.sizes["example/small"] == Size(500, 954)
    assert options.grace == timedelta(seconds=2)
    assert options.tolerations == ({"key": "edge", "operator": "Exists", "effect": "NoSchedule"},)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("scope: some", "scope"),
        ("networking: auto", "networking"),
        ("sizes: {a: {cpu: lots, memory: 1Gi}}", "sizes.a.cpu"),
        ("sizes: {a: {cpu: 1, memory: 1Gi}}", "sizes.a.cpu"),
        ('sizes: {a: {cpu: "0", memory: 1Gi}}', "sizes.a.cpu"),
        ("pods: {terminationGracePeriod: 1500ms}", "pods.terminationGracePeriod"),
        ("networkPolicy: some", "networkPolicy"),
        ("network: {denyEgress: [10.0.0.1/8]}", "network.denyEgress"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, text)
    assert field in str(refused.value)
