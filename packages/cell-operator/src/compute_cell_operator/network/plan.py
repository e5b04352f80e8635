"""What the network of a deployment still needs, and whether it is ready. Pure (cell.md 6).

Every interface goes through the same chain, and the first link that is not ready is what it waits
for. All bindings are asked for before any is judged, so that interfaces come up beside each other.

```
binding Ready ─► its context Ready ─► a private IPv4 claim in it Ready ─► its Subnet Ready
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_api_types import names, reasons
from compute_cell_operator.kinds import NETWORK_BINDING, NETWORK_CONTEXT, SUBNET_CLAIM
from compute_cell_operator.network.observe import (
    Binding,
    Claim,
    Context,
    NetworkSeen,
    derive_reference,
    is_failed,
)
from compute_operator_kit.intents import Delete, Ensure, Intent, OnlyUnder, Owned
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import OwnerReference
from compute_operator_kit.wire import JsonMapping

SUBNET_CLASS: Final = "private"
IP_FAMILY: Final = "IPv4"


@dataclass(frozen=True, slots=True)
class Ready:
    """Every interface has its subnet."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something is on its way; `what` is named to the user."""

    what: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The network operator said no, in its own words."""

    reason: str
    message: str


Readiness: TypeAlias = Ready | Waiting | Refused


@dataclass(frozen=True, slots=True)
class Demand:
    """Whose network, and where."""

    deployment: ObjectKey
    owner: OwnerReference  # the deployment as controller
    location: str
    most_interfaces: int = 0  # of any Instance there is: what it uses stays


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """What is done, and what to say."""

    intents: tuple[Intent, ...]
    readiness: Readiness


def plan_network(seen: NetworkSeen, demand: Demand) -> NetworkPlan:
    bindings = tuple(_plan_bindings(seen, demand))
    links = [_follow(seen, demand, index) for index in range(len(seen.interfaces))]
    claims = {link.claim.key: link.claim for link in links if link.claim is not None}
    return NetworkPlan((*bindings, *claims.values()), _summarise(link.readiness for link in links))


def _summarise(found: Iterable[Readiness]) -> Readiness:
    """The most specific of what stands in the way; among equals the lowest interface."""
    blockers = [one for one in found if not isinstance(one, Ready)]
    return min(blockers, key=_severity, default=Ready())


def _severity(found: Readiness) -> int:
    if not isinstance(found, Refused):
        return 2
    return 0 if found.reason == reasons.NETWORK_FAILED_TO_CREATE else 1


# --- bindings -------------------------------------------------------------------------------------


def _plan_bindings(seen: NetworkSeen, demand: Demand) -> Iterator[Intent]:
    for index, network in enumerate(seen.interfaces):
        found = seen.bindings.get(index)
        if found is None:
            yield _new_binding(demand, index, network)
        elif _is_ours(found, demand) and not _fits(found, network, demand):
            # Bindings are immutable where it counts: a new one takes its place when this is gone.
            yield from _remove(found, reasons.DRIFTED)
    for index, found in sorted(seen.bindings.items()):
        is_left_over = index >= max(len(seen.interfaces), demand.most_interfaces)
        if is_left_over and _is_ours(found, demand):
            yield from _remove(found, reasons.NOT_WANTED)


def _new_binding(demand: Demand, index: int, network: JsonMapping) -> Ensure:
    name = names.derive_network_binding_name(demand.deployment.name, index)
    key = ObjectKey(demand.deployment.plane, NETWORK_BINDING, demand.deployment.namespace, name)
    kept = {part: network[part] for part in ("namespace", "name") if network.get(part)}
    spec: JsonMapping = {"network": kept, "location": {"name": demand.location}}
    wanted = Owned(owners=(demand.owner,))
    owner = demand.deployment
    under = OnlyUnder(owner, lock=owner, uid=demand.owner.uid)
    return Ensure(
        key, wanted, reasons.NETWORK_PROVISIONING, initial={"spec": spec}, only_under=under
    )


def _remove(found: Binding, reason: str) -> Iterator[Delete]:
    if not found.metadata.is_deleting:
        yield Delete(found.key, found.metadata.uid, reason)


def _is_ours(found: Binding, demand: Demand) -> bool:
    controller = found.metadata.controller
    return controller is not None and controller.uid == demand.owner.uid


def _fits(found: Binding, network: JsonMapping, demand: Demand) -> bool:
    wanted = derive_reference(
        {part: str(value) for part, value in network.items()}, found.key.namespace
    )
    return found.network == wanted and found.location == demand.location


# --- the chain of one interface -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Link:
    """How far an interface has come, and the claim to be made for it."""

    readiness: Readiness
    claim: Ensure | None = None


def _follow(seen: NetworkSeen, demand: Demand, index: int) -> Link:
    name = names.derive_network_binding_name(demand.deployment.name, index)
    binding = seen.bindings.get(index)
    if binding is None:
        return _waiting("NetworkBinding", name)
    if not _is_ours(binding, demand):
        return Link(Waiting(f'NetworkBinding "{name}", which belongs to somebody else'))
    if binding.metadata.is_deleting or not _fits(binding, seen.interfaces[index], demand):
        return _waiting("NetworkBinding", name)
    refused = _refusal(binding)
    if refused is not None:
        return Link(refused)
    if binding.ready is None or not binding.ready.is_true or binding.context is None:
        return _waiting("NetworkBinding", name)
    context = seen.contexts.get(binding.context)
    if context is None or context.ready is None or not context.ready.is_true:
        return _waiting("NetworkContext", binding.context.name)
    return _follow_claim(seen.claims.get(binding.context, ()), context, demand)


def _refusal(binding: Binding) -> Refused | None:
    ready = binding.ready
    if ready is None or ready.status != "False":
        return None
    if is_failed(ready) or ready.reason == reasons.NETWORK_NOT_FOUND:
        return Refused(ready.reason, ready.message)
    return None


def _follow_claim(claims: tuple[Claim, ...], context: Context, demand: Demand) -> Link:
    matching = [claim for claim in claims if _matches(claim, demand)]
    name = names.derive_subnet_claim_name(context.key.name)
    if not matching:
        if any(claim.key.name == name for claim in claims):
            # The name is taken by a claim for something else; only its going helps.
            return _waiting("SubnetClaim", name)
        return Link(Waiting(_named("SubnetClaim", name)), _new_claim(context, demand))
    return _judge_claim(next((c for c in matching if _is_settled(c)), matching[0]))


def _judge_claim(claim: Claim) -> Link:
    if claim.ready is None or not claim.ready.is_true or not claim.subnet:
        return _waiting("SubnetClaim", claim.key.name)
    if not _is_settled(claim):
        return _waiting("Subnet", claim.subnet)
    return Link(Ready())


def _is_settled(claim: Claim) -> bool:
    told = (claim.ready, claim.subnet_ready)
    return bool(claim.subnet) and all(ready is not None and ready.is_true for ready in told)


def _matches(claim: Claim, demand: Demand) -> bool:
    found = (claim.subnet_class, claim.ip_family, claim.location)
    return found == (SUBNET_CLASS, IP_FAMILY, demand.location)


def _new_claim(context: Context, demand: Demand) -> Ensure:
    name = names.derive_subnet_claim_name(context.key.name)
    key = ObjectKey(context.key.plane, SUBNET_CLAIM, context.key.namespace, name)
    owner = OwnerReference(
        NETWORK_CONTEXT.api_version, NETWORK_CONTEXT.kind, context.key.name, context.metadata.uid
    )
    # Other deployments in this context need the same claim: whoever came first made ours too.
    spec: JsonMapping = {
        "subnetClass": SUBNET_CLASS,
        "ipFamily": IP_FAMILY,
        "networkContext": {"name": context.key.name},
        "location": {"name": demand.location},
    }
    wanted = Owned(parts={"spec": spec})
    under = OnlyUnder(context.key, lock=context.key, uid=context.metadata.uid)
    born = _owned_by(owner)
    return Ensure(key, wanted, reasons.NETWORK_PROVISIONING, initial=born, only_under=under)


def _owned_by(owner: OwnerReference) -> JsonMapping:
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    return {"metadata": {"ownerReferences": [reference]}}


def _waiting(kind: str, name: str) -> Link:
    return Link(Waiting(_named(kind, name)))


def _named(kind: str, name: str) -> str:
    return f'{kind} "{name}"'
