"""The mutation of policies by karmada-webhook, as a part of a simulated hub.

```python
Plane("hub", PlaneParts(clock, identities, amendments=karmada_amendments(identities)))
```

On a hub without it, the policy controller completes policies after their creation. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.state import Amendment
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import JsonObject, objects_at, string_at
from compute_sim_planes.karmada.kinds import (
    CLUSTER_POLICIES,
    CLUSTER_POLICY_FINALIZER,
    CLUSTER_POLICY_ID,
    POLICIES,
    POLICY_FINALIZER,
    POLICY_ID,
)
from compute_sim_planes.karmada.metadata import labels_of, namespace_of, with_metadata
from compute_sim_planes.time.sources import Identities

_MARKS: Final = {
    POLICIES.kind: (POLICY_ID, POLICY_FINALIZER),
    CLUSTER_POLICIES.kind: (CLUSTER_POLICY_ID, CLUSTER_POLICY_FINALIZER),
}


def karmada_amendments(identities: Identities) -> Mapping[GroupResource, Amendment]:
    """The mutations for a plane that is a hub."""
    amend = partial(complete_policy, identities=identities)
    return {
        GroupResource(resource.group, resource.plural): amend
        for resource in (POLICIES, CLUSTER_POLICIES)
    }


def complete_policy(
    before: JsonObject | None, desired: JsonObject, identities: Identities
) -> JsonObject:
    """The policy with id and finalizer if it is new, and with the namespace of its selectors.

    Returns the same value when there is nothing to complete.
    """
    marks = _MARKS.get(string_at(desired, "kind"))
    if marks is None:
        return desired  # of another kind than its path; refused later
    label, finalizer = marks
    completed = desired
    if before is None and not labels_of(desired).get(label):
        completed = with_metadata(
            desired, labels={label: identities.uid()}, finalizers=(finalizer,)
        )
    namespace = namespace_of(desired)
    selectors = objects_at(completed, "spec", "resourceSelectors")
    if namespace and not all(string_at(one, "namespace") for one in selectors):
        completed = copy_object(completed)
        for selector in objects_at(completed, "spec", "resourceSelectors"):
            selector["namespace"] = string_at(selector, "namespace") or namespace
    return completed
