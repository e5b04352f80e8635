"""What pods may connect to and be reached on, computed from the policies that ship (S5)."""

from __future__ import annotations

import pytest

from compute_api_types.wire import JsonObject
from e2e.deploy_checks.network_flows import ANY_PEER, NetworkFlow, UnknownRuleError, derive_flows
from e2e.harness.deploy.manifests import load_overlay
from e2e.harness.deploy.overlay_targets import OPERATORS
from e2e.world.components import load_component
from e2e.world.objects import object_at, text_at

DNS_OF_CLUSTER, DNS_OF_NODE = (
    "namespaces kubernetes.io/metadata.name=kube-system",
    "169.254.20.10/32",
)
# Addresses of API servers are known to an overlay alone.
OPEN = {NetworkFlow("out", ANY_PEER, "TCP", port) for port in (443, 6443, 5443)}
# The list of operations.md 4.1, network-policy.
DECLARED = {
    NetworkFlow("in", ANY_PEER, "TCP", 8081),  # probes, from whichever node
    NetworkFlow("in", "namespaces metrics=enabled", "TCP", 8443),
    *(
        NetworkFlow("out", peer, protocol, 53)
        for peer in (DNS_OF_CLUSTER, DNS_OF_NODE)
        for protocol in ("TCP", "UDP")
    ),
    NetworkFlow("out", "namespaces otlp=enabled", "TCP", 4318),
    *OPEN,
}
WEBHOOK = NetworkFlow("in", ANY_PEER, "TCP", 9443)
KARMADA = NetworkFlow("out", ANY_PEER, "TCP", 5443)


def labels_of(overlay: str, operator: str) -> JsonObject:
    for document in load_overlay(overlay):
        name = text_at(document, "metadata", "name")
        if text_at(document, "kind") == "Deployment" and name == OPERATORS[operator]:
            return object_at(document, "spec", "template", "metadata", "labels")
    raise LookupError(operator)


@pytest.mark.spec("S5")
@pytest.mark.parametrize(
    ("operator", "declared"),
    [
        ("management", DECLARED | {WEBHOOK}),
        ("cell", DECLARED),
        ("pod-provider", DECLARED - {KARMADA}),
    ],
)
@pytest.mark.parametrize("is_single", [False, True])
def test_flows_of_an_operator_are_exactly_those_declared(
    operator: str, declared: set[NetworkFlow], *, is_single: bool
) -> None:
    folder = "single-cluster" if is_single else operator
    component = "network-policy" if is_single else f"network-policy/{operator}"
    assert derive_flows(load_component(component), labels_of(folder, operator)) == declared


@pytest.mark.spec("AT-26")
@pytest.mark.parametrize(
    ("operator", "opened"),
    [
        ("management", "TCP 443, 6443 and 5443 until an overlay names the API servers"),
        ("cell", "TCP 443, 6443 and 5443 until an overlay names the API servers"),
        ("pod-provider", "TCP 443 and 6443 until an overlay names the API server"),
    ],
)
def test_what_is_open_to_any_address_is_one_policy_that_states_it(
    operator: str, opened: str
) -> None:
    labels = labels_of(operator, operator)
    open_ones = {
        text_at(policy, "metadata", "name"): text_at(
            policy, "metadata", "annotations", "kubernetes.io/description"
        )
        for policy in load_component(f"network-policy/{operator}")
        if any(
            flow.direction == "out" and flow.peer == ANY_PEER and flow.port
            for flow in derive_flows([policy], labels)
        )
    }
    stated = f"Open to any address on {opened} in spec.egress[0].to"
    assert open_ones == {f"{OPERATORS[operator]}-api-servers": stated}


def test_operators_are_closed_by_default_and_strangers_are_left_alone() -> None:
    found = load_component("network-policy")
    closed = [one for one in found if text_at(one, "metadata", "name").endswith("default-deny")]
    for operator in OPERATORS:
        assert derive_flows(closed, labels_of("single-cluster", operator)) == set()
    stranger: JsonObject = {"app.kubernetes.io/name": "somebody"}
    everything = {
        NetworkFlow("in", ANY_PEER, ANY_PEER, 0),
        NetworkFlow("out", ANY_PEER, ANY_PEER, 0),
    }
    assert derive_flows(found, stranger) == everything


def a_policy(rule: JsonObject) -> JsonObject:
    return {"spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [rule]}}


def test_rule_without_peers_and_ports_opens_everything() -> None:
    everything = NetworkFlow("in", ANY_PEER, ANY_PEER, 0)
    assert everything in derive_flows([a_policy({})], {})


def test_peers_and_ports_are_combined() -> None:
    rule: JsonObject = {
        "from": [{"namespaceSelector": {"matchLabels": {"a": "1"}}}, {"namespaceSelector": {}}],
        "ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}],
    }
    found = {flow for flow in derive_flows([a_policy(rule)], {}) if flow.direction == "in"}
    assert found == {
        NetworkFlow("in", peer, protocol, port)
        for peer in ("namespaces a=1", "namespaces of any label")
        for protocol, port in (("TCP", 1), ("UDP", 2))
    }


@pytest.mark.parametrize(
    ("cidr", "peer"),
    [("0.0.0.0/0", ANY_PEER), ("::/0", ANY_PEER), ("192.0.2.0/24", "192.0.2.0/24")],
)
def test_a_range_of_all_addresses_is_anybody(cidr: str, peer: str) -> None:
    rule: JsonObject = {"from": [{"ipBlock": {"cidr": cidr}}], "ports": [{"port": 1}]}
    assert NetworkFlow("in", peer, "TCP", 1) in derive_flows([a_policy(rule)], {})


STRANGE: list[JsonObject] = [
    {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]},
    {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "namespaceSelector": {}}]},
    {"from": [{"podSelector": {}}]},
    {"ports": [{"port": "https"}]},
    {"ports": [{"port": 1, "endPort": 9}]},
    {"to": []},
]


@pytest.mark.parametrize("rule", STRANGE)
def test_what_is_not_understood_is_refused_not_passed_over(rule: JsonObject) -> None:
    with pytest.raises(UnknownRuleError):
        derive_flows([a_policy(rule)], {})
