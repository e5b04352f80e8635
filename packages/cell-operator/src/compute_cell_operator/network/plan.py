"""Plan of the network of one deployment: missing objects, and whether it is ready. Pure
(cell.md 6).

Each interface waits for the first object of its chain that is not ready. All bindings are requested
before any is evaluated, so that a slow interface does not delay the others.

```
binding Ready ─► its context Ready ─► a private IPv4 claim in it Ready ─► its Subnet Ready
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_api_types import names, reasons
from compute_cell_operator.network.observe import (
    NetworkReference,
    ObservedBinding,
    ObservedContext,
    ObservedNetwork,
    SubnetClaimState,
    is_failed,
)
from compute_cell_operator.planes import NETWORK_BINDING, NETWORK_CONTEXT, SUBNET_CLAIM
from compute_operator_kit.core.json import JsonMapping
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import OwnerReference
from compute_operator_kit.intents.intents import Delete, Ensure, Intent, OwnedFields, RequireExists

SUBNET_CLASS: Final = "private"
IP_FAMILY: Final = "IPv4"


@dataclass(frozen=True, slots=True)
class NetworkReady:
    """Every interface has its subnet."""


@dataclass(frozen=True, slots=True)
class NetworkWaiting:
    """An object is not ready yet; `what` names it in the condition."""

    what: str


@dataclass(frozen=True, slots=True)
class NetworkRefused:
    """The network operator refused, with this reason and message."""

    reason: str
    message: str


Readiness: TypeAlias = NetworkReady | NetworkWaiting | NetworkRefused


@dataclass(frozen=True, slots=True)
class NetworkDemand:
    """The deployment that needs a network, and its Location."""

    deployment: ObjectKey
    owner: OwnerReference  # the deployment as controller
    location: str
    most_interfaces: int = 0  # of any existing Instance: bindings in use are kept


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """Intents, and the readiness they start from."""

    intents: tuple[Intent, ...]
    readiness: Readiness


def plan_network(observed: ObservedNetwork, demand: NetworkDemand) -> NetworkPlan:
    bindings = tuple(_plan_bindings(observed, demand))
    links = [_follow(observed, demand, index) for index in range(len(observed.interfaces))]
    claims = {link.claim.key: link.claim for link in links if link.claim is not None}
    return NetworkPlan((*bindings, *claims.values()), _summarise(link.readiness for link in links))


def _summarise(interfaces: Iterable[Readiness]) -> Readiness:
    """The most specific blocker; among equals that of the lowest interface."""
    blockers = [one for one in interfaces if not isinstance(one, NetworkReady)]
    return min(blockers, key=_severity, default=NetworkReady())


def _severity(readiness: Readiness) -> int:
    if not isinstance(readiness, NetworkRefused):
        return 2
    return 0 if readiness.reason == reasons.NETWORK_FAILED_TO_CREATE else 1


# --- bindings -------------------------------------------------------------------------------------


def _plan_bindings(observed: ObservedNetwork, demand: NetworkDemand) -> Iterator[Intent]:
    for index, network in enumerate(observed.interfaces):
        existing = observed.bindings.get(index)
        if existing is None:
            yield _new_binding(demand, index, network)
        elif _is_ours(existing, demand) and not _fits(existing, network, demand):
            # The fields that differ are immutable: a new binding follows once this one is gone.
            yield from _remove(existing, reasons.DRIFTED)
    for index, existing in sorted(observed.bindings.items()):
        is_unused = index >= max(len(observed.interfaces), demand.most_interfaces)
        if is_unused and _is_ours(existing, demand):
            yield from _remove(existing, reasons.NOT_WANTED)


def _new_binding(demand: NetworkDemand, index: int, network: NetworkReference) -> Ensure:
    name = names.derive_network_binding_name(demand.deployment.name, index)
    key = ObjectKey(demand.deployment.plane, NETWORK_BINDING, demand.deployment.namespace, name)
    reference = {"namespace": network.namespace, "name": network.name}
    spec: JsonMapping = {
        "network": {member: text for member, text in reference.items() if text},
        "location": {"name": demand.location},
    }
    desired = OwnedFields(owners=(demand.owner,))
    owner = demand.deployment
    under = RequireExists(owner, lock=owner, uid=demand.owner.uid)
    initial = {"spec": spec}
    return Ensure(key, desired, reasons.NETWORK_PROVISIONING, initial=initial, requires=under)


def _remove(binding: ObservedBinding, reason: str) -> Iterator[Delete]:
    if not binding.metadata.is_deleting:
        yield Delete(binding.key, binding.metadata.uid, reason)


def _is_ours(binding: ObservedBinding, demand: NetworkDemand) -> bool:
    controller = binding.metadata.controller
    return controller is not None and controller.uid == demand.owner.uid


def _fits(binding: ObservedBinding, network: NetworkReference, demand: NetworkDemand) -> bool:
    desired = network.within(binding.key.namespace)
    return binding.network == desired and binding.location == demand.location


# --- the chain of one interface -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Link:
    """Readiness of one interface, and the SubnetClaim it lacks."""

    readiness: Readiness
    claim: Ensure | None = None


def _follow(observed: ObservedNetwork, demand: NetworkDemand, index: int) -> Link:
    name = names.derive_network_binding_name(demand.deployment.name, index)
    binding = observed.bindings.get(index)
    if binding is None:
        return _waiting("NetworkBinding", name)
    if not _is_ours(binding, demand):
        return Link(NetworkWaiting(f'NetworkBinding "{name}", which belongs to somebody else'))
    if binding.metadata.is_deleting or not _fits(binding, observed.interfaces[index], demand):
        return _waiting("NetworkBinding", name)
    refused = _refusal(binding)
    if refused is not None:
        return Link(refused)
    if binding.ready is None or not binding.ready.is_true or binding.context is None:
        return _waiting("NetworkBinding", name)
    context = observed.contexts.get(binding.context)
    if context is None or context.ready is None or not context.ready.is_true:
        return _waiting("NetworkContext", binding.context.name)
    return _follow_claim(observed.claims.get(binding.context, ()), context, demand)


def _refusal(binding: ObservedBinding) -> NetworkRefused | None:
    ready = binding.ready
    if ready is None or ready.status != "False":
        return None
    if is_failed(ready) or ready.reason == reasons.NETWORK_NOT_FOUND:
        return NetworkRefused(ready.reason, ready.message)
    return None


def _follow_claim(
    claims: tuple[SubnetClaimState, ...], context: ObservedContext, demand: NetworkDemand
) -> Link:
    matching = [claim for claim in claims if _matches(claim, demand)]
    name = names.derive_subnet_claim_name(context.key.name)
    if not matching:
        if any(claim.key.name == name for claim in claims):
            # A claim with other fields has the name: a new one is possible once it is deleted.
            return _waiting("SubnetClaim", name)
        return Link(NetworkWaiting(_named("SubnetClaim", name)), _new_claim(context, demand))
    return _evaluate_claim(next((c for c in matching if _is_settled(c)), matching[0]))


def _evaluate_claim(claim: SubnetClaimState) -> Link:
    if claim.ready is None or not claim.ready.is_true or not claim.subnet:
        return _waiting("SubnetClaim", claim.key.name)
    if not _is_settled(claim):
        return _waiting("Subnet", claim.subnet)
    return Link(NetworkReady())


def _is_settled(claim: SubnetClaimState) -> bool:
    both = (claim.ready, claim.subnet_ready)
    return bool(claim.subnet) and all(ready is not None and ready.is_true for ready in both)


def _matches(claim: SubnetClaimState, demand: NetworkDemand) -> bool:
    stated = (claim.subnet_class, claim.ip_family, claim.location)
    return stated == (SUBNET_CLASS, IP_FAMILY, demand.location)


def _new_claim(context: ObservedContext, demand: NetworkDemand) -> Ensure:
    name = names.derive_subnet_claim_name(context.key.name)
    key = ObjectKey(context.key.plane, SUBNET_CLAIM, context.key.namespace, name)
    owner = OwnerReference(
        NETWORK_CONTEXT.api_version, NETWORK_CONTEXT.kind, context.key.name, context.metadata.uid
    )
    # Other deployments in this context need the same claim, and may have created it already.
    spec: JsonMapping = {
        "subnetClass": SUBNET_CLASS,
        "ipFamily": IP_FAMILY,
        "networkContext": {"name": context.key.name},
        "location": {"name": demand.location},
    }
    desired = OwnedFields(merge={"spec": spec})
    under = RequireExists(context.key, lock=context.key, uid=context.metadata.uid)
    initial = _owned_by(owner)
    return Ensure(key, desired, reasons.NETWORK_PROVISIONING, initial=initial, requires=under)


def _owned_by(owner: OwnerReference) -> JsonMapping:
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    return {"metadata": {"ownerReferences": [reference]}}


def _waiting(kind: str, name: str) -> Link:
    return Link(NetworkWaiting(_named(kind, name)))


def _named(kind: str, name: str) -> str:
    return f'{kind} "{name}"'
