"""What pods may connect to and be reached on, computed from the policies that ship (S5)."""

from __future__ import annotations

import pytest

from compute_api_types.wire import JsonObject
from e2e.manifests import DEPLOY, render
from e2e.objects import object_at, text_at
from e2e.shipped.network_flows import ANYBODY, Flow, UnknownRuleError, derive_flows

# The list of operations.md 4.1, network-policy.
DECLARED = {
    Flow("in", ANYBODY, "TCP", 8081),  # probes, from whichever node
    Flow("in", "namespaces metrics=enabled", "TCP", 8443),
    Flow("out", ANYBODY, "UDP", 53),
    Flow("out", ANYBODY, "TCP", 53),
    Flow("out", ANYBODY, "TCP", 443),
    Flow("out", ANYBODY, "TCP", 6443),
    Flow("out", ANYBODY, "TCP", 5443),
    Flow("out", ANYBODY, "TCP", 4317),
    Flow("out", ANYBODY, "TCP", 4318),
}
WEBHOOK = Flow("in", ANYBODY, "TCP", 9443)


def labels_of(folder: str, operator: str) -> JsonObject:
    for document in render(DEPLOY / folder):
        name = text_at(document, "metadata", "name")
        if text_at(document, "kind") == "Deployment" and name == f"compute-{operator}-operator":
            return object_at(document, "spec", "template", "metadata", "labels")
    raise LookupError(operator)


def policies(component: str) -> list[JsonObject]:
    return render(DEPLOY / "components" / component)


@pytest.mark.spec("S5")
@pytest.mark.parametrize(
    ("operator", "declared"), [("management", DECLARED | {WEBHOOK}), ("cell", DECLARED)]
)
@pytest.mark.parametrize("is_single", [False, True])
def test_flows_of_an_operator_are_exactly_those_declared(
    operator: str, declared: set[Flow], *, is_single: bool
) -> None:
    folder = "single-cluster" if is_single else operator
    component = "network-policy" if is_single else f"network-policy/{operator}"
    assert derive_flows(policies(component), labels_of(folder, operator)) == declared


def test_operators_are_closed_by_default_and_strangers_are_left_alone() -> None:
    found = policies("network-policy")
    closed = [one for one in found if text_at(one, "metadata", "name").endswith("default-deny")]
    for operator in ("management", "cell"):
        assert derive_flows(closed, labels_of("single-cluster", operator)) == set()
    stranger: JsonObject = {"app.kubernetes.io/name": "somebody"}
    everything = {Flow("in", ANYBODY, ANYBODY, 0), Flow("out", ANYBODY, ANYBODY, 0)}
    assert derive_flows(found, stranger) == everything


def a_policy(rule: JsonObject) -> JsonObject:
    return {"spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [rule]}}


def test_rule_without_peers_and_ports_opens_everything() -> None:
    everything = Flow("in", ANYBODY, ANYBODY, 0)
    assert everything in derive_flows([a_policy({})], {})


def test_peers_and_ports_are_combined() -> None:
    rule: JsonObject = {
        "from": [{"namespaceSelector": {"matchLabels": {"a": "1"}}}, {"namespaceSelector": {}}],
        "ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}],
    }
    found = {flow for flow in derive_flows([a_policy(rule)], {}) if flow.direction == "in"}
    assert found == {
        Flow("in", peer, protocol, port)
        for peer in ("namespaces a=1", "namespaces of any label")
        for protocol, port in (("TCP", 1), ("UDP", 2))
    }


STRANGE: list[JsonObject] = [
    {"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]},
    {"from": [{"podSelector": {}}]},
    {"ports": [{"port": "https"}]},
    {"ports": [{"port": 1, "endPort": 9}]},
    {"to": []},
]


@pytest.mark.parametrize("rule", STRANGE)
def test_what_is_not_understood_is_refused_not_passed_over(rule: JsonObject) -> None:
    with pytest.raises(UnknownRuleError):
        derive_flows([a_policy(rule)], {})
