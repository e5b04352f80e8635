"""The connections that NetworkPolicies allow a pod (`faults.md` S5).

Policies are additive: a pod selected for a direction has what all its policies allow together and
nothing else; an unselected pod has everything. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final, Literal

from compute_api_types.wire import JsonObject
from e2e.world.objects import number_at, object_at, objects_at, text_at, texts_at

ANY_PEER: Final = "any"
Direction = Literal["in", "out"]
_FIELDS: Final[dict[Direction, tuple[str, str, str]]] = {
    "in": ("Ingress", "ingress", "from"),
    "out": ("Egress", "egress", "to"),
}


class UnknownRuleError(Exception):
    """A policy uses a field that is not supported here; ignoring it could hide a flow."""


@dataclass(frozen=True, slots=True, order=True)
class NetworkFlow:
    """Connections of a pod: peer and port; 0 is any port."""

    direction: Direction
    peer: str
    protocol: str
    port: int


def derive_flows(policies: Iterable[JsonObject], pod_labels: JsonObject) -> set[NetworkFlow]:
    """Flows of a pod with these labels; `policies` are those of its namespace."""
    selecting = [policy for policy in policies if _selects(policy, pod_labels)]
    flows: set[NetworkFlow] = set()
    for direction, (policy_type, rules, peers) in _FIELDS.items():
        isolating = [
            policy for policy in selecting if policy_type in texts_at(policy, "spec", "policyTypes")
        ]
        if not isolating:
            flows.add(NetworkFlow(direction, ANY_PEER, ANY_PEER, 0))
        for policy in isolating:
            for rule in objects_at(policy, "spec", rules):
                flows.update(_flows_of(direction, rule, peers))
    return flows


def _flows_of(direction: Direction, rule: JsonObject, peers: str) -> Iterator[NetworkFlow]:
    _refuse_unknown(rule, {"ports", peers})
    named = [_peer_of(peer) for peer in objects_at(rule, peers)] or [ANY_PEER]
    ports = [_port_of(port) for port in objects_at(rule, "ports")] or [(ANY_PEER, 0)]
    for peer in named:
        for protocol, port in ports:
            yield NetworkFlow(direction, peer, protocol, port)


def _port_of(port: JsonObject) -> tuple[str, int]:
    _refuse_unknown(port, {"protocol", "port"})
    number = number_at(port, "port")
    if not number:
        raise UnknownRuleError("a port by name, or none at all")
    return text_at(port, "protocol") or "TCP", number


def _peer_of(peer: JsonObject) -> str:
    if "ipBlock" in peer:
        _refuse_unknown(peer, {"ipBlock"})
        return _addresses_of(object_at(peer, "ipBlock"))
    _refuse_unknown(peer, {"namespaceSelector"})
    selector = object_at(peer, "namespaceSelector")
    _refuse_unknown(selector, {"matchLabels"})
    chosen = sorted(f"{key}={value}" for key, value in object_at(selector, "matchLabels").items())
    return "namespaces " + (",".join(chosen) or "of any label")


def _addresses_of(block: JsonObject) -> str:
    """`ANY_PEER` for a range of all addresses, in every notation."""
    _refuse_unknown(block, {"cidr"})
    network = ip_network(text_at(block, "cidr"), strict=False)
    return ANY_PEER if network.prefixlen == 0 else str(network)


def _selects(policy: JsonObject, pod_labels: JsonObject) -> bool:
    selector = object_at(policy, "spec", "podSelector")
    _refuse_unknown(selector, {"matchLabels"})
    wanted = object_at(selector, "matchLabels").items()
    return all(pod_labels.get(key) == value for key, value in wanted)


def _refuse_unknown(document: JsonObject, known: set[str]) -> None:
    if unknown := sorted(set(document) - known):
        raise UnknownRuleError(f"{', '.join(unknown)}: not understood")
