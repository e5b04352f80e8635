"""Status of an Instance: the merge patch of what the provider owns, or none. Pure.

Conditions are merged into the list as it was read, so that `Ready` and `QuotaGranted` of the cell
operator survive; the patch carries the version that was read, so that a concurrent write is a
conflict and not a loss (api.md 8.1).
"""

from __future__ import annotations

from datetime import datetime

from compute_api_types import conditions
from compute_api_types.conditions import Statement
from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import ObservedInstance
from compute_pod_provider.pod_facts import NoPod, ObservedPod
from compute_pod_provider.verdict import Shown, Verdict


def report(
    instance: ObservedInstance, pod: ObservedPod | NoPod, verdict: Verdict, now: datetime
) -> JsonObject | None:
    """The body of a merge patch of `/status`; None where nothing differs."""
    desired: JsonObject = {"conditions": _conditions(instance, verdict, now)}
    desired["networkInterfaces"] = _interfaces(instance, pod)
    if isinstance(pod, ObservedPod) and pod.has_started and pod.template_hash:
        desired["controller"] = {"observedTemplateHash": pod.template_hash}
    existing = instance.status
    changed = {key: value for key, value in desired.items() if existing.get(key) != value}
    if not changed:
        return None
    return {
        "metadata": {"resourceVersion": instance.resource_version},
        "status": changed,
    }


def _conditions(instance: ObservedInstance, verdict: Verdict, now: datetime) -> list[JsonValue]:
    existing = instance.status.get("conditions")
    shown = {conditions.AVAILABLE: verdict.available, conditions.PROGRAMMED: verdict.programmed}
    statements = [
        _statement(name, one, instance.generation) for name, one in shown.items() if one is not None
    ]
    return conditions.merge_documents(
        existing if isinstance(existing, list) else None, statements, now
    )


def _statement(name: str, shown: Shown, generation: int) -> Statement:
    return Statement(name, shown.status, shown.reason, shown.message, generation)


def _interfaces(instance: ObservedInstance, pod: ObservedPod | NoPod) -> JsonValue:
    """One entry per interface of the spec; the address is that of the Pod and goes with it."""
    if isinstance(pod, NoPod) or not pod.addresses or not instance.interfaces:
        return None  # in a merge patch: absent
    first: JsonObject = {"assignments": {"networkIP": pod.addresses[0]}}
    others: list[JsonValue] = [{} for _ in range(instance.interfaces - 1)]
    return [first, *others]
