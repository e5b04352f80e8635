"""Placement: the members that fit a binding, and why others do not. Pure.

The affinity is checked for every member each time; served kinds and taints are checked only for
members that do not have the object yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from compute_sim_planes.api_server.admission.match_rules import parse_selector
from compute_sim_planes.json_types import (
    JsonObject,
    object_at,
    objects_at,
    string_at,
    strings_at,
    value_at,
)
from compute_sim_planes.karmada.bindings.resource_binding import scheduled_clusters
from compute_sim_planes.karmada.metadata import is_terminating, labels_of, name_of

AFFINITY_MISMATCH = "cluster(s) did not match the placement cluster affinity constraint"
API_NOT_SERVED = "cluster(s) did not have the API resource"


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The chosen members in the order of their names, or why there are none."""

    clusters: tuple[str, ...]
    failure: str = ""


def choose_clusters(binding: JsonObject, clusters: Iterable[JsonObject]) -> ScheduleResult:
    """Every member that fits: WorkloadDeployments have no replicas to divide."""
    everyone = [*clusters]
    chosen: list[str] = []
    refusals: Counter[str] = Counter()
    for cluster in everyone:
        if is_terminating(cluster):
            continue
        refusal = find_refusal(binding, cluster)
        if refusal:
            refusals[refusal] += 1
        else:
            chosen.append(name_of(cluster))
    if chosen:
        return ScheduleResult(tuple(sorted(chosen)))
    reasons = sorted(f"{count} {refusal}" for refusal, count in refusals.items())
    why = ", ".join(reasons) or "no cluster exists"
    return ScheduleResult((), f"0/{len(everyone)} clusters are available: {why}.")


def find_refusal(binding: JsonObject, cluster: JsonObject) -> str:
    """Why a member does not fit; empty when it does."""
    placement = object_at(binding, "spec", "placement")
    if not matches_affinity(placement, cluster):
        return AFFINITY_MISMATCH
    if name_of(cluster) in scheduled_clusters(binding):
        return ""  # already scheduled there
    reference = object_at(binding, "spec", "resource")
    if not _serves(cluster, string_at(reference, "apiVersion"), string_at(reference, "kind")):
        return API_NOT_SERVED
    return _find_taint(placement, cluster)


def matches_affinity(placement: JsonObject, cluster: JsonObject) -> bool:
    """Whether the placement's affinity selects a member; without an affinity, every member."""
    affinity = placement.get("clusterAffinity")
    if not isinstance(affinity, dict):
        return True
    name = name_of(cluster)
    if name in strings_at(affinity, "exclude"):
        return False
    selector = affinity.get("labelSelector")
    if isinstance(selector, dict) and not parse_selector(selector).matches(labels_of(cluster)):
        return False
    names = strings_at(affinity, "clusterNames")
    return not names or name in names


def _serves(cluster: JsonObject, api_version: str, kind: str) -> bool:
    return any(
        string_at(served, "groupVersion") == api_version
        and any(string_at(one, "kind") == kind for one in objects_at(served, "resources"))
        for served in objects_at(cluster, "status", "apiEnablements")
    )


def _find_taint(placement: JsonObject, cluster: JsonObject) -> str:
    tolerations = objects_at(placement, "clusterTolerations")
    for taint in objects_at(cluster, "spec", "taints"):
        effect = string_at(taint, "effect")
        if effect not in {"NoSchedule", "NoExecute"}:
            continue
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            value = string_at(taint, "value")
            shown = f"{string_at(taint, 'key')}{'=' + value if value else ''}:{effect}"
            return f"cluster(s) had untolerated taint {{{shown}}}"
    return ""


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if string_at(toleration, "effect") not in {"", string_at(taint, "effect")}:
        return False
    is_any = string_at(toleration, "operator") == "Exists"
    key = string_at(toleration, "key")
    if key != string_at(taint, "key") and not (is_any and not key):
        return False
    return is_any or (value_at(toleration, "value") or "") == string_at(taint, "value")
