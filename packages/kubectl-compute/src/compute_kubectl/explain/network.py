"""What the `Network` gate of an Instance waits for: binding, context, subnet claim, subnet.

The first of the four that is not Ready is named; without access to the cell the deployment's own
condition has to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from compute_api_types import conditions, labels, reasons
from compute_kubectl.explain.causes import CAUSES
from compute_kubectl.explain.cell_stages import find_deployment_cause
from compute_kubectl.explain.chain import Chain
from compute_kubectl.explain.diagnosis import Finding
from compute_kubectl.explain.stage_result import seen
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenCondition, SeenInstance, SeenNetworkObject

_OF_NETWORKS = frozenset(
    {
        reasons.NETWORK_NOT_FOUND,
        reasons.NETWORK_FAILED_TO_CREATE,
        reasons.NO_MATCHING_LOCATION,
        reasons.NETWORK_PROVISIONING,
    }
)


def describe_network(chain: Chain, instance: SeenInstance, finding: Finding) -> Finding:
    """The finding with the network object that is not Ready, or what a condition reports."""
    finding = _with_reason(finding, instance.condition(conditions.READY))
    deployment = chain.nearest_deployment
    if deployment is not None:
        stated = find_deployment_cause(deployment) or deployment.condition(conditions.READY)
        finding = _with_reason(finding, stated)
    unready = next(_unready(chain, instance), None)
    if unready is None:
        return finding
    ready = unready.condition(conditions.READY)
    value = f"{ready.status} {ready.reason}" if ready else "absent"
    evidence = seen(chain.cell.name, unready, conditions.READY, value)
    described = replace(
        finding,
        evidence=(*finding.evidence, evidence),
        details=(f"{unready.meta.kind} {unready.meta.name} is not Ready",),
    )
    return _with_reason(described, ready)


def _with_reason(finding: Finding, condition: SeenCondition | None) -> Finding:
    """A reason about networks replaces a less specific one."""
    if condition is None or condition.is_true or condition.reason not in _OF_NETWORKS:
        return finding
    if conditions.rank(condition.reason) < conditions.rank(finding.reason or reasons.PENDING):
        return finding
    cause = CAUSES[condition.reason]
    return replace(
        finding,
        text=f"{finding.text.partition(': ')[0]}: {condition.reason}",
        reason=condition.reason,
        message=condition.message,
        since=condition.since or finding.since,
        owner=cause.owner,
        turn=cause.turn,
        condition_type=condition.type,
        status=condition.status,
    )


def _unready(chain: Chain, instance: SeenInstance) -> Iterator[SeenNetworkObject]:
    """Network objects that are not Ready, in the order in which they are made."""
    cell = chain.cell
    if cell.network_bindings.access is not Access.READ:
        return
    deployment = instance.meta.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME) or chain.deployment_name
    bindings = _bindings_of(chain, deployment, instance.meta.namespace)
    yield from _not_ready(bindings)
    contexts = {one.context for one in bindings if one.context}
    yield from _not_ready(one for one in cell.network_contexts if one.meta.name in contexts)
    claims = [one for one in cell.subnet_claims if one.context in contexts]
    yield from _not_ready(claims)
    subnets = {one.subnet for one in claims if one.subnet}
    yield from _not_ready(one for one in cell.subnets if one.meta.name in subnets)


def network_bindings_of(chain: Chain) -> list[SeenNetworkObject]:
    """The NetworkBindings of the cell's WorkloadDeployment."""
    if chain.cell_deployment is None:
        return []
    meta = chain.cell_deployment.meta
    return _bindings_of(chain, meta.name, meta.namespace)


def _bindings_of(chain: Chain, deployment: str, namespace: str) -> list[SeenNetworkObject]:
    return [
        one
        for one in chain.cell.network_bindings
        if one.meta.name.startswith(f"{deployment}-net-") and one.meta.namespace == namespace
    ]


def _not_ready(objects: Iterable[SeenNetworkObject]) -> Iterator[SeenNetworkObject]:
    return (one for one in objects if not one.is_true(conditions.READY))
