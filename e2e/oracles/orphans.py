"""O4: at the end of a run every object of ours has an existing root that wants it.

```
project WD ◄─ hub WD ◄─ PropagationPolicy · hub Instance · cell WD ◄─ cell Instance
     ▲─ projection (and its hub Instance)      ▲─ ResourceClaim of a slot that is wanted
```

A hub namespace outlives its project namespace for a while. Objects created by hand have no root.
"""

from __future__ import annotations

from collections.abc import Iterator

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_sim_planes.history import History
from compute_sim_planes.oracles.invariants import Violation
from e2e.oracles.layout import Layout
from e2e.oracles.state import ObjectLocation, State, derive_state, of_kind
from e2e.world.objects import labels_of, number_at, object_at, objects_at, text_at, uid_of
from e2e.world.port import HUB

HUB_PREFIX = "ns-"


def no_orphans(history: History, layout: Layout) -> list[Violation]:
    """O4, over the state at the end of a run."""
    state = derive_state(history)
    orphans = [*_deployments(state, layout), *_policies(state), *_owned(state, layout)]
    orphans += [*_projections(state, layout), *_claims(state, layout)]
    return [
        Violation("O4", history.now, f"{location} {why}")
        for location, why in orphans
        if str(location) not in layout.by_hand and location.plane not in layout.lost
    ]


def _project_namespaces(state: State, layout: Layout) -> dict[str, ObjectLocation]:
    """Project namespaces by the name of their hub namespace."""
    return {
        f"{HUB_PREFIX}{uid_of(namespace)}": location
        for location, namespace in of_kind(state, "Namespace")
        if layout.side_of(location.plane) == "project"
    }


def _deployments(state: State, layout: Layout) -> Iterator[tuple[ObjectLocation, str]]:
    """A hub deployment needs one in the project; a cell deployment needs one on the hub with its
    UID.
    """
    roots = _project_namespaces(state, layout)
    for location, deployment in of_kind(state, "WorkloadDeployment"):
        side = layout.side_of(location.plane)
        if side == "hub":
            home = roots.get(location.namespace)
            if home is None:
                yield location, "stands for a project namespace that does not exist"
            elif (
                ObjectLocation(home.plane, location.kind, f"{home.name}/{location.name}")
                not in state
            ):
                yield location, f"has no root in project {home.plane}"
        elif side == "cell":
            above = state.get(ObjectLocation(HUB, location.kind, location.key))
            noted = text_at(deployment, "metadata", "annotations", labels.KARMADA_TEMPLATE_UID)
            if above is None:
                yield location, "has no deployment on the hub"
            elif noted and noted != uid_of(above):
                yield location, "was made from a hub deployment that is gone"


def _policies(state: State) -> Iterator[tuple[ObjectLocation, str]]:
    for location, policy in of_kind(state, "PropagationPolicy", HUB):
        selectors = objects_at(policy, "spec", "resourceSelectors")
        city = ""
        if selectors:
            wanted = object_at(selectors[0], "labelSelector", "matchLabels")
            city = text_at(wanted, labels.TOPOLOGY_CITY_CODE)
        cities = {
            text_at(one, "metadata", "labels", labels.TOPOLOGY_CITY_CODE)
            for place, one in of_kind(state, "WorkloadDeployment", HUB)
            if place.namespace == location.namespace
        }
        if city not in cities:
            yield location, f"routes city {city!r}, of which there is no deployment"


def _owned(state: State, layout: Layout) -> Iterator[tuple[ObjectLocation, str]]:
    """Instances on hub and cells need the deployment beside them as owner."""
    for location, instance in of_kind(state, "Instance"):
        if layout.side_of(location.plane) in {"hub", "cell"} and not _has_owner(
            state, location, instance
        ):
            yield location, "has no controller that lives"


def _has_owner(state: State, location: ObjectLocation, document: JsonObject) -> bool:
    for owner in objects_at(document, "metadata", "ownerReferences"):
        key = f"{location.namespace}/{text_at(owner, 'name')}"
        above = state.get(ObjectLocation(location.plane, text_at(owner, "kind"), key))
        if above is not None and uid_of(above) == text_at(owner, "uid"):
            return True
    return False


def _projections(state: State, layout: Layout) -> Iterator[tuple[ObjectLocation, str]]:
    uids = {location: name for name, location in _project_namespaces(state, layout).items()}
    for location, instance in of_kind(state, "Instance"):
        if layout.side_of(location.plane) != "project":
            continue
        hub = uids.get(ObjectLocation(location.plane, "Namespace", location.namespace), "")
        if not _has_owner(state, location, instance):
            yield location, "has no deployment in its project"
        elif ObjectLocation(HUB, "Instance", f"{hub}/{location.name}") not in state:
            yield location, "shows an Instance that the hub does not have"


def _claims(state: State, layout: Layout) -> Iterator[tuple[ObjectLocation, str]]:
    """A cell's claim needs a deployment in the project that wants its slot."""
    for location, claim in of_kind(state, "ResourceClaim"):
        if layout.side_of(location.plane) == "project" and labels_of(claim).get(
            labels.SOURCE_CLUSTER
        ):
            deployment, _, ordinal = location.name.removeprefix("instance-").rpartition("-")
            root = state.get(
                ObjectLocation(
                    location.plane, "WorkloadDeployment", f"{location.namespace}/{deployment}"
                )
            )
            if root is None:
                yield location, "is of a deployment that does not exist"
            elif int(ordinal) >= wanted_replicas(root):
                yield location, "is of a slot that no deployment wants"


def wanted_replicas(deployment: JsonObject) -> int:
    """The number of slots; of an autoscaled deployment the one that its cell reports."""
    settings = object_at(deployment, "spec", "scaleSettings")
    least = number_at(settings, "minReplicas")
    if "maxReplicas" not in settings or "metrics" not in settings:
        return least
    return max(least, number_at(deployment, "status", "desiredReplicas"))
