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
from compute_pod_provider.instance_facts import ObservedInstance, object_at
from compute_pod_provider.pod_facts import NoPod, ObservedPod
from compute_pod_provider.verdict import Shown, Verdict


def report(
    instance: ObservedInstance,
    pod: ObservedPod | NoPod,
    verdict: Verdict,
    now: datetime,
    *,
    is_stopped: bool = False,
) -> JsonObject | None:
    """The body of a merge patch of `/status`; None where nothing differs. `is_stopped`: the
    Instance is suspended and its Pod is gone.
    """
    desired: JsonObject = {"conditions": _conditions(instance, verdict, now)}
    desired["networkInterfaces"] = _interfaces(instance, pod)
    existing = instance.status
    changed = {key: value for key, value in desired.items() if existing.get(key) != value}
    controller = _controller(instance, pod, is_stopped=is_stopped)
    if controller:
        changed["controller"] = controller
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


def _controller(
    instance: ObservedInstance, pod: ObservedPod | NoPod, *, is_stopped: bool
) -> JsonObject:
    """The members of `controller` that differ. The stop is confirmed beside a hash only, which the
    schema requires: an Instance that never started has nothing to stop.
    """
    existing = object_at(instance.status, "controller")
    desired: JsonObject = {}
    if isinstance(pod, ObservedPod) and pod.has_started and pod.template_hash:
        desired["observedTemplateHash"] = pod.template_hash
    has_hash = "observedTemplateHash" in existing
    desired["suspendedObserved"] = True if is_stopped and has_hash else None
    return {key: value for key, value in desired.items() if existing.get(key) != value}


def _interfaces(instance: ObservedInstance, pod: ObservedPod | NoPod) -> JsonValue:
    """One entry per interface of the spec; the address is that of the Pod and goes with it."""
    if isinstance(pod, NoPod) or not pod.addresses or not instance.interfaces:
        return None  # in a merge patch: absent
    first: JsonObject = {"assignments": {"networkIP": pod.addresses[0]}}
    others: list[JsonValue] = [{} for _ in range(instance.interfaces - 1)]
    return [first, *others]
