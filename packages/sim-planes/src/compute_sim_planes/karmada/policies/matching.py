"""Selection of the policy that claims an object. Pure.

```
PropagationPolicies of its namespace:  priority ─► name > labels > everything ─► first by name
if none matches:                       the same among ClusterPropagationPolicies
```
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from compute_sim_planes.api_server.admission.match_rules import parse_selector
from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.karmada.metadata import is_terminating, labels_of, name_of, namespace_of


class MatchPriority(IntEnum):
    """How specifically a selector matches an object."""

    NOT = 0
    ALL = 1
    LABELS = 2
    NAME = 3


def match_selectors(existing: JsonObject, policy: JsonObject) -> MatchPriority:
    """The most specific match among a policy's selectors."""
    selectors = objects_at(policy, "spec", "resourceSelectors")
    return max((_match(existing, selector) for selector in selectors), default=MatchPriority.NOT)


def _match(existing: JsonObject, selector: JsonObject) -> MatchPriority:
    for field in ("apiVersion", "kind"):
        if string_at(selector, field) != string_at(existing, field):
            return MatchPriority.NOT
    if string_at(selector, "namespace") not in {"", namespace_of(existing)}:
        return MatchPriority.NOT
    if name := string_at(selector, "name"):
        # With a name, labels are ignored.
        return MatchPriority.NAME if name == name_of(existing) else MatchPriority.NOT
    if not isinstance(selector.get("labelSelector"), dict):
        return MatchPriority.ALL
    labels = parse_selector(object_at(selector, "labelSelector"))
    return MatchPriority.LABELS if labels.matches(labels_of(existing)) else MatchPriority.NOT


def choose_policy(existing: JsonObject, policies: Iterable[JsonObject]) -> JsonObject | None:
    """The policy that claims an object; terminating policies are skipped."""
    candidates = [
        (-(integer_at(policy, "spec", "priority") or 0), -match, name_of(policy), policy)
        for policy in policies
        if not is_terminating(policy) and (match := match_selectors(existing, policy))
    ]
    return min(candidates, key=lambda candidate: candidate[:3])[3] if candidates else None
