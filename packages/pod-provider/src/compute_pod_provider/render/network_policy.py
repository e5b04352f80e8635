"""The NetworkPolicy of an Instance: what may connect to its Pod, and to what the Pod may. Pure.

Enforcing is the network plugin's. The policy selects the one Pod by the UID of its Instance, so
that no other Pod of the namespace is closed by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv6Network, ip_network
from typing import Final

from compute_api_types import labels
from compute_api_types.v1alpha.instance import InstanceSpec
from compute_api_types.v1alpha.network_interfaces import (
    NetworkPolicyIngressRule,
    NetworkPolicyPeer,
    NetworkPolicyPort,
)
from compute_api_types.wire import JsonObject, JsonValue

# DNS of the cluster, and of the cache on the node, at an address in a range denied by default.
_DNS: Final[JsonObject] = {
    "to": [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}},
        {"ipBlock": {"cidr": "169.254.20.10/32"}},
    ],
    "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
}
_OWN_NAMESPACE: Final[JsonObject] = {"podSelector": {}}


def render_network_policy(
    metadata: JsonObject, spec: InstanceSpec, uid: str, denied: Iterable[str]
) -> JsonObject:
    """Ingress from its namespace and as its interfaces allow; egress to all but `denied`."""
    interfaces = [one.network_policy for one in spec.network_interfaces or ()]
    rules = [rule for policy in interfaces if policy for rule in policy.ingress or ()]
    ingress: list[JsonValue] = [{"from": [_OWN_NAMESPACE]}, *_ingress(rules)]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            "podSelector": {"matchLabels": {labels.INSTANCE_UID: uid}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": [{"to": [*_everywhere(denied), _OWN_NAMESPACE]}, _DNS],
        },
    }


def _ingress(rules: Iterable[NetworkPolicyIngressRule]) -> Iterator[JsonObject]:
    for rule in rules:
        peers = [_block(peer) for peer in rule.from_ or () if peer.ip_block]
        if rule.from_ and not peers:
            continue  # a rule for peers of which none is known must not become one for all
        rendered: JsonObject = {}
        if peers:
            rendered["from"] = [*peers]
        if rule.ports:
            rendered["ports"] = [_port(port) for port in rule.ports]
        yield rendered


def _block(peer: NetworkPolicyPeer) -> JsonObject:
    return {"ipBlock": peer.ip_block.to_document() if peer.ip_block else {}}


def _port(port: NetworkPolicyPort) -> JsonObject:
    rendered: JsonObject = {"protocol": (port.protocol or "TCP").upper()}
    if port.port is not None:
        rendered["port"] = port.port
    if port.end_port is not None:
        rendered["endPort"] = port.end_port
    return rendered


def _everywhere(denied: Iterable[str]) -> Iterator[JsonObject]:
    """All addresses of both families, but for the denied ranges."""
    ranges = [*denied]
    v6 = [one for one in ranges if isinstance(ip_network(one), IPv6Network)]
    for cidr, excepted in (("0.0.0.0/0", [one for one in ranges if one not in v6]), ("::/0", v6)):
        block: JsonObject = {"cidr": cidr}
        if excepted:
            block["except"] = [*excepted]
        yield {"ipBlock": block}
