"""`tree`, `timeline`, `cities` and `quota` as text that fits a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from compute_kubectl.render.layout import clean, format_age, format_moment, table, wrap
from compute_kubectl.snapshot.access import Access
from compute_kubectl.views.cities import Cities, City
from compute_kubectl.views.quota import QuotaView, ResourceQuota
from compute_kubectl.views.timeline import Moment, Timeline
from compute_kubectl.views.tree import Node, Tree, keep_bad

SLOWEST = "◀ slowest"
_MOST_WAITING = 5


# --- tree -----------------------------------------------------------------------------------------


def render_tree(tree: Tree, width: int, *, only_bad: bool = False) -> list[str]:
    """One line for each object, below the object that it comes from."""
    root = tree.root
    if root is None:
        return wrap(f"Workload {tree.namespace}/{tree.name} could not be read", width)
    if only_bad:
        root = keep_bad(root)
        if root is None:
            return wrap(f"Workload {tree.namespace}/{tree.name}: every object is well", width)
    rows = [["object", "plane", "age", "state"], *_rows(root, "", "")]
    return _fitted(rows, width)


def _rows(node: Node, lead: str, below: str) -> Iterator[list[str]]:
    one = node.object
    state = f"{node.condition_type}={node.status} {node.reason}" if node.status else ""
    if not node.condition_type:
        state = node.reason
    age = format_age(node.age) if node.age is not None else ""
    yield [f"{lead}{clean(one.kind)} {clean(one.name)}", clean(one.plane), age, clean(state)]
    for place, child in enumerate(node.children):
        is_last = place == len(node.children) - 1
        yield from _rows(
            child, below + ("└─ " if is_last else "├─ "), below + ("   " if is_last else "│  ")
        )


def _fitted(rows: list[list[str]], width: int) -> list[str]:
    """Columns where they fit; else the first column with the rest after it, wrapped below."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        return [
            "  ".join(f"{c:<{w}}" for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
        ]
    lines: list[str] = []
    for first, *rest in rows[1:]:
        indent = first[: len(first) - len(first.lstrip("│├└─ "))].replace("├─", "│ ")
        indent = indent.replace("└─", "  ")
        joined = "  ".join(one for one in rest if one)
        lines += [first] if len(first) <= width else wrap(first, width)
        lines += wrap(joined, width, f"{indent}  "[: max(width - 20, 0)])
    return lines


# --- timeline -------------------------------------------------------------------------------------


def render_timeline(timeline: Timeline, width: int) -> list[str]:
    """A row for each moment, the longest wait marked."""
    lines = wrap(f"Workload {timeline.namespace}/{timeline.name}", width)
    if not timeline.moments:
        lines += wrap("Nothing is recorded in this time.", width)
    else:
        rows = [["time", "+", "plane", "object", "what", "by"]]
        rows += [_moment_row(timeline, one) for one in timeline.moments]
        lines += table(rows, width)
    for one in timeline.missing:
        lines += wrap(f"missing: {one}", width)
    return lines


def _moment_row(timeline: Timeline, one: Moment) -> list[str]:
    delta = format_age(one.delta) if one.delta else ""
    counted = f" (× {one.count})" if one.count > 1 else ""
    marked = f" {SLOWEST}" if one.is_slowest else ""
    return [
        format_moment(one.at, timeline.at),
        f"{delta}{marked}",
        one.plane,
        f"{one.object.kind} {one.object.name}",
        f"{one.what}{counted}",
        one.by,
    ]


# --- cities ---------------------------------------------------------------------------------------


def render_cities(cities: Cities, width: int) -> list[str]:
    """A row for each city."""
    if not cities.cities:
        return wrap("No city is visible.", width)
    head = ["city", "clusters", "reporting", "deployments", "ready", "waiting", "oldest"]
    rows = [head, *(_city_row(cities, one) for one in cities.cities)]
    lines = table(rows, width)
    if not cities.knows_clusters:
        lines += wrap("Clusters are not visible: the hub was not read (--hub-context).", width)
    return lines


def _city_row(cities: Cities, city: City) -> list[str]:
    states = [
        f"{one.name} {'Ready' if one.is_ready else f'not Ready: {one.reason or one.status}'}"
        for one in city.clusters
    ]
    clusters = ", ".join(states) or ("none" if cities.knows_clusters else "?")
    waited = cities.waited(city)
    return [
        city.code,
        clusters,
        ", ".join(city.reporting) or "none",
        str(city.deployments),
        f"{city.ready}/{city.desired}",
        ", ".join(f"{name} {number}" for name, number in city.waiting.items()) or "none",
        format_age(waited) if waited is not None else "",
    ]


# --- quota ----------------------------------------------------------------------------------------


def render_quota(view: QuotaView, width: int) -> list[str]:
    """A block for each resource type: numbers, users, waits."""
    if view.access is not Access.READ:
        detail = f" ({view.detail})" if view.detail else ""
        return wrap(f"Quota could not be read: {view.access.value}{detail}", width)
    if not view.resources:
        return wrap("This project has no quota for compute.", width)
    rows = [["resource", "limit", "allocated", "available", "used by"]]
    rows += [
        [
            one.short_name,
            str(one.limit),
            str(one.allocated),
            str(one.available),
            ", ".join(f"{name} {amount}" for name, amount in one.used_by.items()) or "none",
        ]
        for one in view.resources
    ]
    lines = table(rows, width)
    for one in view.resources:
        for text in _waits(view, one):
            lines += wrap(text, width)
    return lines


def _waits(view: QuotaView, one: ResourceQuota) -> Iterator[str]:
    for claim in one.waiting[:_MOST_WAITING]:
        age = None if claim.since is None else max(view.at - claim.since, timedelta())
        since = f" for {format_age(age)}" if age is not None else ""
        yield f"{one.short_name}: {claim.instance} waits for {claim.amount}{since}: {claim.reason}"
    if len(one.waiting) > _MOST_WAITING:
        yield f"{one.short_name}: {len(one.waiting) - _MOST_WAITING} more wait"
    for name, amount in one.next_replica.items():
        if amount > one.available:
            yield (
                f"{one.short_name}: the next replica of {name} needs {amount}, "
                f"{one.available} is left"
            )
