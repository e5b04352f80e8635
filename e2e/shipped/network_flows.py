"""Which connections NetworkPolicies let a pod have (`faults.md` S5).

Policies add up: a pod that any policy selects for a direction has what the policies together allow
in it, and nothing else; a pod that none selects has everything. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final, Literal

from compute_api_types.wire import JsonObject
from e2e.objects import number_at, object_at, objects_at, text_at, texts_at

ANYBODY: Final = "anybody"
Direction = Literal["in", "out"]
_FIELDS: Final[dict[Direction, tuple[str, str, str]]] = {
    "in": ("Ingress", "ingress", "from"),
    "out": ("Egress", "egress", "to"),
}


class UnknownRuleError(Exception):
    """A policy says something that is not understood here: a flow would be missed in silence."""


@dataclass(frozen=True, slots=True, order=True)
class Flow:
    """Connections a pod may have: with whom, and on which port; 0 is any."""

    direction: Direction
    peer: str
    protocol: str
    port: int


def derive_flows(policies: Iterable[JsonObject], pod_labels: JsonObject) -> set[Flow]:
    """What a pod with these labels may do; the policies are those of its namespace."""
    selecting = [policy for policy in policies if _selects(policy, pod_labels)]
    flows: set[Flow] = set()
    for direction, (policy_type, rules, peers) in _FIELDS.items():
        isolating = [
            policy for policy in selecting if policy_type in texts_at(policy, "spec", "policyTypes")
        ]
        if not isolating:
            flows.add(Flow(direction, ANYBODY, ANYBODY, 0))
        for policy in isolating:
            for rule in objects_at(policy, "spec", rules):
                flows.update(_flows_of(direction, rule, peers))
    return flows


def _flows_of(direction: Direction, rule: JsonObject, peers: str) -> Iterator[Flow]:
    _refuse_unknown(rule, {"ports", peers})
    named = [_peer_of(peer) for peer in objects_at(rule, peers)] or [ANYBODY]
    ports = [_port_of(port) for port in objects_at(rule, "ports")] or [(ANYBODY, 0)]
    for peer in named:
        for protocol, port in ports:
            yield Flow(direction, peer, protocol, port)


def _port_of(found: JsonObject) -> tuple[str, int]:
    _refuse_unknown(found, {"protocol", "port"})
    number = number_at(found, "port")
    if not number:
        raise UnknownRuleError("a port by name, or none at all")
    return text_at(found, "protocol") or "TCP", number


def _peer_of(found: JsonObject) -> str:
    if "ipBlock" in found:
        _refuse_unknown(found, {"ipBlock"})
        return _addresses_of(object_at(found, "ipBlock"))
    _refuse_unknown(found, {"namespaceSelector"})
    selector = object_at(found, "namespaceSelector")
    _refuse_unknown(selector, {"matchLabels"})
    chosen = sorted(f"{key}={value}" for key, value in object_at(selector, "matchLabels").items())
    return "namespaces " + (",".join(chosen) or "of any label")


def _addresses_of(block: JsonObject) -> str:
    """A range of all addresses is everybody, however it is written."""
    _refuse_unknown(block, {"cidr"})
    network = ip_network(text_at(block, "cidr"), strict=False)
    return ANYBODY if network.prefixlen == 0 else str(network)


def _selects(policy: JsonObject, pod_labels: JsonObject) -> bool:
    selector = object_at(policy, "spec", "podSelector")
    _refuse_unknown(selector, {"matchLabels"})
    wanted = object_at(selector, "matchLabels").items()
    return all(pod_labels.get(key) == value for key, value in wanted)


def _refuse_unknown(found: JsonObject, known: set[str]) -> None:
    if unknown := sorted(set(found) - known):
        raise UnknownRuleError(f"{', '.join(unknown)}: not understood")
