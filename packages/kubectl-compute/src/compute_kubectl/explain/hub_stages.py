"""Stages 3 to 6: the hub copy exists, a policy claims it, Karmada schedules and applies it.

Members that are not Ready, policies that are missing and messages of Karmada are named here; none
of them ever shows in a project.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from compute_api_types import conditions, labels
from compute_kubectl.explain.causes import Actionability
from compute_kubectl.explain.chain import Chain
from compute_kubectl.explain.diagnosis import Evidence, Finding, ObjectName
from compute_kubectl.explain.project_stages import with_federation_event
from compute_kubectl.explain.stage_result import (
    Blocked,
    Hidden,
    Passed,
    StageResult,
    hidden_by,
    latest,
    seen,
)
from compute_kubectl.explain.stages import STAGES, Owner, Stage
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.decode_metadata import POLICY_NAME
from compute_kubectl.snapshot.objects import (
    AppliedStatus,
    SeenBinding,
    SeenCluster,
    SeenDeployment,
)

_KIND = "WorkloadDeployment"
SCHEDULED = "Scheduled"


def judge_federated(chain: Chain) -> StageResult:
    """3: the hub has the namespace with its identity and a current copy of the deployment."""
    hub = chain.snapshot.hub
    if chain.is_single_cluster:
        return Passed(Stage.FEDERATED)
    hidden = hidden_by(Stage.FEDERATED, hub.facts, hub.deployments)
    if hidden is not None:
        return hidden
    copy = chain.hub_deployment
    if copy is None and not hub.deployments.proves_absence:
        return Hidden(Stage.FEDERATED, hub.facts.name, Access.READ, "the list is incomplete")
    wrong = _wrong_namespace(chain)
    if wrong is None and copy is not None:
        wrong = _wrong_copy(chain, copy)
    elif wrong is None:
        wrong = _finding(chain, f"the hub has no copy in namespace {chain.hub_namespace!r}")
    if wrong is not None:
        return Blocked(with_federation_event(chain, wrong))
    return Passed(Stage.FEDERATED, Stage.FEDERATED, _unproved_generation(chain))


def _wrong_namespace(chain: Chain) -> Finding | None:
    hub = chain.snapshot.hub
    if hub.namespaces.access is not Access.READ:
        return None
    namespace = chain.hub_namespace_object
    if namespace is None:
        if not hub.namespaces.proves_absence:
            return None
        return _finding(chain, f"the hub has no namespace {chain.hub_namespace!r}")
    missing = [key for key in labels.IDENTITY_LABELS if not namespace.meta.labels.get(key)]
    if not missing:
        return None
    evidence = seen(hub.facts.name, namespace, "metadata.labels", f"no {missing[0]}", "Namespace")
    return _finding(chain, f"the hub namespace does not carry the label {missing[0]}", evidence)


def _wrong_copy(chain: Chain, copy: SeenDeployment) -> Finding | None:
    plane = chain.snapshot.hub.facts.name
    if copy.unreadable:
        evidence = seen(plane, copy, "spec", "unreadable", _KIND)
        return replace(
            _finding(chain, f"unreadable: {copy.unreadable}", evidence), owner=Owner.PLATFORM
        )
    if copy.meta.is_terminating:
        evidence = seen(plane, copy, "metadata.deletionTimestamp", copy.meta.deleted, _KIND)
        return _finding(chain, "the hub copy of the deployment before is being deleted", evidence)
    project = chain.deployment
    if project is None:
        return None
    written = copy.meta.annotations.get(labels.PROJECT_GENERATION, "")
    if written:
        if written == str(project.meta.generation):
            return None
        evidence = seen(plane, copy, labels.PROJECT_GENERATION, written, _KIND)
        return _finding(
            chain,
            f"the hub copy is of generation {written}, the project's is {project.meta.generation}",
            evidence,
        )
    if _has_equal_spec(project, copy):
        return None
    evidence = seen(plane, copy, "spec", "differs from the project's", _KIND)
    return _finding(chain, "the hub copy does not have the project's spec", evidence)


def _has_equal_spec(project: SeenDeployment, copy: SeenDeployment) -> bool:
    return (project.template_hash, project.min_replicas) == (copy.template_hash, copy.min_replicas)


def _unproved_generation(chain: Chain) -> str:
    copy = chain.hub_deployment
    if copy is None or chain.deployment is None:
        return ""
    if labels.PROJECT_GENERATION in copy.meta.annotations:
        return ""
    return "not provable: the hub copy has no project-generation; its spec equals the project's"


def _finding(chain: Chain, text: str, *evidence: Evidence) -> Finding:
    plane = chain.snapshot.hub.facts.name
    project = chain.deployment
    known = project or chain.hub_deployment
    shown = evidence or (
        (seen(plane, known, "on the hub", "absent", _KIND),) if known is not None else ()
    )
    return Finding(
        Stage.FEDERATED,
        STAGES[Stage.FEDERATED].owner,
        text,
        since=project.meta.spec_changed if project else None,
        object=ObjectName.of(plane, known.meta, _KIND) if known else None,
        evidence=shown,
    )


# --- 4: claimed -----------------------------------------------------------------------------------


def judge_claimed(chain: Chain) -> StageResult:
    """4: a live policy for the city exists, and the hub copy names it."""
    hub = chain.snapshot.hub
    if chain.is_single_cluster:
        return Passed(Stage.CLAIMED)
    copy = chain.hub_deployment
    hidden = hidden_by(Stage.CLAIMED, hub.facts, hub.deployments)
    if hidden is not None or copy is None:
        return hidden or Hidden(Stage.CLAIMED, hub.facts.name, hub.deployments.access)
    named = copy.meta.annotations.get(POLICY_NAME, "")
    if hub.policies.access is not Access.READ:
        if named or chain.binding is not None:
            return Passed(Stage.CLAIMED)
        return Hidden(Stage.CLAIMED, hub.facts.name, hub.policies.access, hub.policies.detail)
    live = [
        one
        for one in hub.policies
        if one.city == chain.city
        and one.meta.namespace == copy.meta.namespace
        and not one.meta.is_terminating
    ]
    if named and any(one.meta.name == named for one in live):
        return Passed(Stage.CLAIMED)
    if live:
        owner = Owner.KARMADA
        text = f"policy {live[0].meta.name!r} does not claim the hub copy yet"
    else:
        owner = STAGES[Stage.CLAIMED].owner
        text = f"no live PropagationPolicy for {chain.city} in {copy.meta.namespace!r}"
    since = latest(copy.meta.spec_changed, *(one.meta.created for one in live))
    finding = Finding(
        Stage.CLAIMED,
        owner,
        text,
        since=since,
        object=ObjectName.of(hub.facts.name, copy.meta, _KIND),
        evidence=(seen(hub.facts.name, copy, POLICY_NAME, named or "absent", _KIND),),
    )
    return Blocked(finding)


# --- 5: scheduled ---------------------------------------------------------------------------------


def judge_scheduled(chain: Chain) -> StageResult:
    """5: Karmada has chosen the cell."""
    hub = chain.snapshot.hub
    if chain.is_single_cluster:
        return Passed(Stage.SCHEDULED)
    copy, binding = chain.hub_deployment, chain.binding
    hidden = hidden_by(Stage.SCHEDULED, hub.facts, hub.bindings)
    if hidden is not None or copy is None:
        return hidden or Hidden(Stage.SCHEDULED, hub.facts.name, hub.deployments.access)
    if binding is None:
        if not hub.bindings.proves_absence:
            return Hidden(Stage.SCHEDULED, hub.facts.name, Access.READ, "the list is incomplete")
        return Blocked(_not_scheduled(chain, copy, None))
    scheduled = binding.condition(SCHEDULED)
    is_current = binding.scheduler_observed_generation in {0, binding.meta.generation} or (
        binding.scheduler_observed_generation > binding.meta.generation
    )
    if scheduled is not None and scheduled.is_true and is_current and binding.clusters:
        return Passed(Stage.SCHEDULED)
    return Blocked(_not_scheduled(chain, copy, binding))


def _not_scheduled(chain: Chain, copy: SeenDeployment, binding: SeenBinding | None) -> Finding:
    hub = chain.snapshot.hub
    plane = hub.facts.name
    evidence = [_cluster_evidence(plane, one) for one in chain.clusters]
    turn = None
    owner = STAGES[Stage.SCHEDULED].owner
    if hub.clusters.proves_absence and not chain.clusters:
        owner, turn = Owner.PLATFORM, Actionability.PLATFORM
        text = f"no Cluster carries the city code {chain.city}"
    elif binding is None:
        text = "Karmada has made no ResourceBinding for the hub copy"
    else:
        text = "Karmada has not scheduled the hub copy"
    scheduled = binding.condition(SCHEDULED) if binding else None
    if binding is not None:
        value = f"{scheduled.status} {scheduled.reason}" if scheduled else "absent"
        evidence.insert(0, seen(plane, binding, SCHEDULED, value, "ResourceBinding"))
    else:
        evidence.insert(0, seen(plane, copy, "ResourceBinding", "absent", _KIND))
    since = scheduled.since if scheduled else copy.meta.spec_changed
    return Finding(
        Stage.SCHEDULED,
        owner,
        text,
        reason=scheduled.reason if scheduled and not scheduled.is_true else "",
        message=scheduled.message if scheduled and not scheduled.is_true else "",
        since=since,
        object=ObjectName.of(plane, copy.meta, _KIND),
        condition_type=SCHEDULED if scheduled else "",
        status=scheduled.status if scheduled else "",
        turn=turn,
        evidence=tuple(evidence),
    )


def _cluster_evidence(plane: str, cluster: SeenCluster) -> Evidence:
    ready = cluster.condition(conditions.READY)
    return seen(plane, cluster, "Ready", ready.status if ready else "absent", "Cluster")


# --- 6: applied -----------------------------------------------------------------------------------


def judge_applied(chain: Chain) -> StageResult:
    """6: Karmada has written the deployment to the cell."""
    hub = chain.snapshot.hub
    if chain.is_single_cluster:
        return Passed(Stage.APPLIED)
    binding = chain.binding
    hidden = hidden_by(Stage.APPLIED, hub.facts, hub.bindings)
    if hidden is not None or binding is None:
        return hidden or Hidden(Stage.APPLIED, hub.facts.name, hub.bindings.access)
    applied = next((one for one in binding.applied if one.cluster == chain.cell_name), None)
    unready = find_unready_cluster(chain)
    if applied is not None and applied.is_applied and unready is None:
        return Passed(Stage.APPLIED)
    return Blocked(_not_applied(chain, binding, applied, unready))


def find_unready_cluster(chain: Chain) -> SeenCluster | None:
    """The Cluster of the cell if Karmada reports it as not Ready."""
    cluster = chain.cluster
    if cluster is None or cluster.is_true(conditions.READY):
        return None
    return cluster


def _not_applied(
    chain: Chain,
    binding: SeenBinding,
    applied: AppliedStatus | None,
    unready: SeenCluster | None,
) -> Finding:
    plane = chain.snapshot.hub.facts.name
    value = "absent" if applied is None else str(applied.is_applied).lower()
    field = f"aggregatedStatus[{chain.cell_name}].applied"
    evidence = [seen(plane, binding, field, value, "ResourceBinding")]
    finding = Finding(
        Stage.APPLIED,
        STAGES[Stage.APPLIED].owner,
        f"Karmada has not applied it to {chain.cell_name}",
        message=applied.message if applied else "",
        since=_scheduled_since(chain, binding),
        object=ObjectName.of(plane, binding.meta, "ResourceBinding"),
        evidence=tuple(evidence),
    )
    if unready is None:
        if applied is not None and applied.message:
            return replace(finding, owner=Owner.PLATFORM, turn=Actionability.PLATFORM)
        return finding
    ready = unready.condition(conditions.READY)
    return replace(
        finding,
        owner=Owner.PLATFORM,
        text=f"Cluster {unready.meta.name} is not Ready: Karmada cannot reach the cell",
        reason=ready.reason if ready else "",
        message=ready.message if ready else finding.message,
        since=ready.since if ready else finding.since,
        object=ObjectName.of(plane, unready.meta, "Cluster"),
        condition_type=conditions.READY,
        status=ready.status if ready else "",
        turn=Actionability.PLATFORM,
        evidence=(_cluster_evidence(plane, unready), *evidence),
    )


def _scheduled_since(chain: Chain, binding: SeenBinding) -> datetime | None:
    scheduled = binding.condition(SCHEDULED)
    copy = chain.hub_deployment
    return latest(scheduled.since if scheduled else None, copy.meta.spec_changed if copy else None)
