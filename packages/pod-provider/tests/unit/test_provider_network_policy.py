from __future__ import annotations

import pytest
from provider_builders.documents import OPTIONS, a_spec, an_instance, observed

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import object_at, objects_at
from compute_pod_provider.options import PodOptions
from compute_pod_provider.render import render, render_policy

ON = PodOptions(has_network_policies=True)
OWN: JsonObject = {"podSelector": {}}


def policy_of(*rules: JsonObject, options: PodOptions = ON) -> JsonObject:
    interface: JsonObject = {"network": {"name": "n"}, "networkPolicy": {"ingress": [*rules]}}
    other: JsonObject = {"network": {"name": "other"}}
    document = an_instance(spec=a_spec(networkInterfaces=[interface, other]))
    rendered = render_policy(observed(document), options)
    assert rendered is not None
    return rendered


def ingress_of(*rules: JsonObject) -> list[JsonObject]:
    return [*objects_at(object_at(policy_of(*rules), "spec"), "ingress")]


@pytest.mark.spec("PP-01")
def test_the_policy_selects_the_pod_of_its_instance_and_no_other() -> None:
    pod, policy = render(observed(an_instance()), ON), policy_of()
    assert isinstance(pod, dict)
    selected = object_at(object_at(policy, "spec"), "podSelector")
    assert selected == {"matchLabels": {labels.INSTANCE_UID: "uid-of-web-dfw-0"}}
    pod_labels = object_at(object_at(pod, "metadata"), "labels")
    assert pod_labels[labels.INSTANCE_UID] == "uid-of-web-dfw-0"
    for shared in ("name", "namespace", "ownerReferences"):
        assert object_at(policy, "metadata")[shared] == object_at(pod, "metadata")[shared]


def test_where_it_is_off_there_is_neither_policy_nor_label() -> None:
    assert render_policy(observed(an_instance()), OPTIONS) is None
    pod = render(observed(an_instance()), OPTIONS)
    assert isinstance(pod, dict)
    assert labels.INSTANCE_UID not in object_at(object_at(pod, "metadata"), "labels")
    assert render_policy(observed({}), ON) is None


@pytest.mark.spec("PP-01")
def test_ingress_is_from_its_namespace_and_as_its_interfaces_allow() -> None:
    block: JsonObject = {"ipBlock": {"cidr": "198.51.100.0/24", "except": ["198.51.100.7/32"]}}
    rule: JsonObject = {
        "from": [block],
        "ports": [{"port": 443, "protocol": "tcp"}, {"port": 1, "endPort": 9, "protocol": "UDP"}],
    }
    ports: list[JsonValue] = [
        {"protocol": "TCP", "port": 443},
        {"protocol": "UDP", "port": 1, "endPort": 9},
    ]
    assert ingress_of(rule) == [{"from": [OWN]}, {"from": [block], "ports": ports}]
    assert ingress_of({"ports": [{"port": "http"}]})[1] == {
        "ports": [{"protocol": "TCP", "port": "http"}]
    }
    assert ingress_of({"ports": [{}]})[1] == {"ports": [{"protocol": "TCP"}]}
    assert ingress_of({})[1] == {}  # everybody, as the user wrote it


def test_a_rule_for_peers_that_are_not_known_is_not_one_for_everybody() -> None:
    assert ingress_of({"from": [{}]}) == [{"from": [OWN]}]


@pytest.mark.spec("PP-01")
def test_egress_is_to_all_but_the_denied_ranges_and_to_dns() -> None:
    options = PodOptions(has_network_policies=True, denied_egress=("10.0.0.0/8", "fd00::/8"))
    spec = object_at(policy_of(options=options), "spec")
    everywhere, dns = objects_at(spec, "egress")
    assert everywhere == {
        "to": [
            {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}},
            {"ipBlock": {"cidr": "::/0", "except": ["fd00::/8"]}},
            OWN,
        ]
    }
    assert [one["port"] for one in objects_at(dns, "ports")] == [53, 53]
    metadata = objects_at(object_at(policy_of(), "spec"), "egress")[0]
    assert objects_at(metadata, "to")[0] == {
        "ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}
    }
