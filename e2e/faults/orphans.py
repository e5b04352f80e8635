"""O4: at the end every object of ours has a root that lives, and is where its root wants it.

```
project WD ◄─ hub WD ◄─ PropagationPolicy · hub Instance · cell WD ◄─ cell Instance
     ▲─ projection (and its hub Instance)      ▲─ ResourceClaim of a slot that is wanted
```

A hub namespace stays as long as its project namespace, and a while longer. An object that a
scenario made by hand has no parent.
"""

from __future__ import annotations

from collections.abc import Iterator

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_sim_planes.history import History
from compute_sim_planes.oracles import Violation
from e2e.backends.port import HUB
from e2e.faults.layout import Layout
from e2e.faults.state import Spot, State, derive_state, of_kind
from e2e.objects import labels_of, number_at, object_at, objects_at, text_at, uid_of

HUB_PREFIX = "ns-"


def no_orphans(history: History, layout: Layout) -> list[Violation]:
    """O4, over the end of a run."""
    state = derive_state(history)
    found = [*_deployments(state, layout), *_policies(state), *_owned(state, layout)]
    found += [*_projections(state, layout), *_claims(state, layout)]
    return [
        Violation("O4", history.now, f"{spot} {why}")
        for spot, why in found
        if str(spot) not in layout.by_hand and spot.plane not in layout.lost
    ]


def _project_namespaces(state: State, layout: Layout) -> dict[str, Spot]:
    """Where hub namespaces come from, by their names."""
    return {
        f"{HUB_PREFIX}{uid_of(found)}": spot
        for spot, found in of_kind(state, "Namespace")
        if layout.side_of(spot.plane) == "project"
    }


def _deployments(state: State, layout: Layout) -> Iterator[tuple[Spot, str]]:
    """Of the hub: there is one in the project. Of a cell: there is one on the hub, and its uid."""
    roots = _project_namespaces(state, layout)
    for spot, found in of_kind(state, "WorkloadDeployment"):
        side = layout.side_of(spot.plane)
        if side == "hub":
            home = roots.get(spot.namespace)
            if home is None:
                yield spot, "stands for a project namespace that does not exist"
            elif Spot(home.plane, spot.kind, f"{home.name}/{spot.name}") not in state:
                yield spot, f"has no root in project {home.plane}"
        elif side == "cell":
            above = state.get(Spot(HUB, spot.kind, spot.key))
            noted = text_at(found, "metadata", "annotations", labels.KARMADA_TEMPLATE_UID)
            if above is None:
                yield spot, "has no deployment on the hub"
            elif noted and noted != uid_of(above):
                yield spot, "was made from a hub deployment that is gone"


def _policies(state: State) -> Iterator[tuple[Spot, str]]:
    for spot, found in of_kind(state, "PropagationPolicy", HUB):
        selectors = objects_at(found, "spec", "resourceSelectors")
        city = ""
        if selectors:
            wanted = object_at(selectors[0], "labelSelector", "matchLabels")
            city = text_at(wanted, labels.TOPOLOGY_CITY_CODE)
        cities = {
            text_at(one, "metadata", "labels", labels.TOPOLOGY_CITY_CODE)
            for place, one in of_kind(state, "WorkloadDeployment", HUB)
            if place.namespace == spot.namespace
        }
        if city not in cities:
            yield spot, f"routes city {city!r}, of which there is no deployment"


def _owned(state: State, layout: Layout) -> Iterator[tuple[Spot, str]]:
    """Instances of hub and cells belong to the deployment beside them."""
    for spot, found in of_kind(state, "Instance"):
        if layout.side_of(spot.plane) in {"hub", "cell"} and not _has_owner(state, spot, found):
            yield spot, "has no controller that lives"


def _has_owner(state: State, spot: Spot, found: JsonObject) -> bool:
    for owner in objects_at(found, "metadata", "ownerReferences"):
        key = f"{spot.namespace}/{text_at(owner, 'name')}"
        above = state.get(Spot(spot.plane, text_at(owner, "kind"), key))
        if above is not None and uid_of(above) == text_at(owner, "uid"):
            return True
    return False


def _projections(state: State, layout: Layout) -> Iterator[tuple[Spot, str]]:
    uids = {spot: name for name, spot in _project_namespaces(state, layout).items()}
    for spot, found in of_kind(state, "Instance"):
        if layout.side_of(spot.plane) != "project":
            continue
        hub = uids.get(Spot(spot.plane, "Namespace", spot.namespace), "")
        if not _has_owner(state, spot, found):
            yield spot, "has no deployment in its project"
        elif Spot(HUB, "Instance", f"{hub}/{spot.name}") not in state:
            yield spot, "shows an Instance that the hub does not have"


def _claims(state: State, layout: Layout) -> Iterator[tuple[Spot, str]]:
    """Of a cell: its slot is wanted by a deployment of that project."""
    for spot, found in of_kind(state, "ResourceClaim"):
        if layout.side_of(spot.plane) == "project" and labels_of(found).get(labels.SOURCE_CLUSTER):
            deployment, _, ordinal = spot.name.removeprefix("instance-").rpartition("-")
            root = state.get(
                Spot(spot.plane, "WorkloadDeployment", f"{spot.namespace}/{deployment}")
            )
            if root is None:
                yield spot, "is of a deployment that does not exist"
            elif int(ordinal) >= number_at(root, "spec", "scaleSettings", "minReplicas"):
                yield spot, "is of a slot that nobody wants"
