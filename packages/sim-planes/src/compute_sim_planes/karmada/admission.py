"""What karmada-webhook does to policies on their way in, as a part of a simulated hub.

```python
Plane("hub", PlaneParts(clock, identities, amendments=karmada_amendments(identities)))
```

A hub without it works too: policies are then completed a moment after they were made. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.sources import Identities
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

_MARKS: Final = {
    POLICIES.kind: (POLICY_ID, POLICY_FINALIZER),
    CLUSTER_POLICIES.kind: (CLUSTER_POLICY_ID, CLUSTER_POLICY_FINALIZER),
}


def karmada_amendments(identities: Identities) -> Mapping[GroupResource, Amendment]:
    """For a plane that is to be a hub."""
    amend = partial(complete_policy, identities=identities)
    return {
        GroupResource(resource.group, resource.plural): amend
        for resource in (POLICIES, CLUSTER_POLICIES)
    }


def complete_policy(
    before: JsonObject | None, wanted: JsonObject, identities: Identities
) -> JsonObject:
    """A new policy gets its id and finalizer, any one the namespace of its selectors.

    The very same value where there is nothing to complete.
    """
    marks = _MARKS.get(string_at(wanted, "kind"))
    if marks is None:
        return wanted  # refused in a moment: it is of another kind than its address says
    label, finalizer = marks
    completed = wanted
    if before is None and not labels_of(wanted).get(label):
        completed = with_metadata(wanted, labels={label: identities.uid()}, finalizers=(finalizer,))
    namespace = namespace_of(wanted)
    selectors = objects_at(completed, "spec", "resourceSelectors")
    if namespace and not all(string_at(one, "namespace") for one in selectors):
        completed = copy_object(completed)
        for selector in objects_at(completed, "spec", "resourceSelectors"):
            selector["namespace"] = string_at(selector, "namespace") or namespace
    return completed
