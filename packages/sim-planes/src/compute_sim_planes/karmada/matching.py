"""Which policy takes an object. Pure.

```
of its namespace's policies:  priority ─► name > labels > everything ─► first by name
nobody there:                 the same among ClusterPropagationPolicies
```
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from compute_sim_planes.api_server.matching import parse_selector
from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.karmada.metadata import is_going, labels_of, name_of, namespace_of


class Match(IntEnum):
    """How closely a selector means an object."""

    NOT = 0
    ALL = 1
    LABELS = 2
    NAME = 3


def match_selectors(found: JsonObject, policy: JsonObject) -> Match:
    """The closest of a policy's selectors."""
    selectors = objects_at(policy, "spec", "resourceSelectors")
    return max((_match(found, selector) for selector in selectors), default=Match.NOT)


def _match(found: JsonObject, selector: JsonObject) -> Match:
    for field in ("apiVersion", "kind"):
        if string_at(selector, field) != string_at(found, field):
            return Match.NOT
    if string_at(selector, "namespace") not in {"", namespace_of(found)}:
        return Match.NOT
    if name := string_at(selector, "name"):
        # A name given, labels do not count.
        return Match.NAME if name == name_of(found) else Match.NOT
    if not isinstance(selector.get("labelSelector"), dict):
        return Match.ALL
    labels = parse_selector(object_at(selector, "labelSelector"))
    return Match.LABELS if labels.matches(labels_of(found)) else Match.NOT


def choose_policy(found: JsonObject, policies: Iterable[JsonObject]) -> JsonObject | None:
    """The policy that claims an object; one that is going claims nothing."""
    candidates = [
        (-(integer_at(policy, "spec", "priority") or 0), -match, name_of(policy), policy)
        for policy in policies
        if not is_going(policy) and (match := match_selectors(found, policy))
    ]
    return min(candidates, key=lambda candidate: candidate[:3])[3] if candidates else None
