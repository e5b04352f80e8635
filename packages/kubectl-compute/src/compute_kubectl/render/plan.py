"""`plan` as text and JSON."""

from __future__ import annotations

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.render.documents import API_VERSION
from compute_kubectl.render.layout import clean, table, wrap
from compute_kubectl.views.plan import Change, WorkloadPlan


def verdict_of(plan: WorkloadPlan) -> str:
    """`would run`, `would wait for …` or `would be refused: …`."""
    if plan.refusals:
        return f"would be refused: {plan.message}"
    if plan.waits:
        return f"would wait for {'; '.join(plan.waits)}"
    return "would run"


def render_plan(plan: WorkloadPlan, width: int, *, is_offline: bool = False) -> list[str]:
    """The verdict, then a row for each deployment, then quota and notes."""
    verdict = verdict_of(plan)
    if is_offline and not plan.refusals:
        verdict = "passes the rules that need no plane"
    lines = wrap(f"Workload {plan.name}: {verdict}", width)
    if len(plan.refusals) > 1:
        for one in plan.refusals:
            lines += wrap(one, width, "  ")
    if plan.changes:
        rows = [["change", "deployment", "city", "replicas", "clusters"]]
        rows += [
            [
                one.change.value,
                one.name or "named when it is created",
                one.city,
                f"{one.before} → {one.after}" if one.before != one.after else str(one.after),
                "?" if one.clusters is None else ", ".join(one.clusters) or "none",
            ]
            for one in plan.changes
        ]
        lines += ["", *table(rows, width)]
    rolled = [one for one in plan.changes if one.change is Change.ROLL]
    if rolled:
        number = sum(min(one.before, one.after) for one in rolled)
        lines += wrap(f"{number} Instances are replaced, one of a city at a time.", width)
    for need in plan.needs:
        text = f"{need.short_name}: {need.needed} needed, {need.available} left"
        lines += wrap(text, width)
    for text in (*plan.warnings, *plan.notes):
        lines += wrap(f"note: {text}", width)
    return lines


def plan_document(plan: WorkloadPlan) -> JsonObject:
    changes: list[JsonValue] = [
        {
            "change": one.change.value,
            "name": clean(one.name),
            "placement": clean(one.placement),
            "cityCode": clean(one.city),
            "replicasBefore": one.before,
            "replicasAfter": one.after,
            "clusters": None if one.clusters is None else [clean(name) for name in one.clusters],
        }
        for one in plan.changes
    ]
    needs: list[JsonValue] = [
        {
            "resourceType": clean(one.resource_type),
            "needed": one.needed,
            "available": one.available,
            "firstToWait": one.first_to_wait if one.is_short else None,
        }
        for one in plan.needs
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "workload": {"name": clean(plan.name)},
        "verdict": clean(verdict_of(plan)),
        "refusals": [clean(one) for one in plan.refusals],
        "waits": [clean(one) for one in plan.waits],
        "deployments": changes,
        "quota": needs,
        "notes": [clean(one) for one in (*plan.warnings, *plan.notes)],
    }
