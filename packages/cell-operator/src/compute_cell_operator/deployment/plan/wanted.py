"""The Instance of a slot as it is wanted: its object, its linking labels, its owner. Pure
(cell.md 5.1).
"""

from __future__ import annotations

from compute_api_types import labels, names, reasons
from compute_cell_operator.deployment.observe import Seen
from compute_cell_operator.deployment.plan.location import refer_to_location
from compute_cell_operator.deployment.rendering import render
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE
from compute_operator_kit.intents import Ensure, OnlyUnder, Owned
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import OwnerReference
from compute_operator_kit.wire import JsonMapping, JsonValue, member_object, member_text


def refer_to_owner(seen: Seen) -> OwnerReference:
    return OwnerReference(
        DEPLOYMENT.api_version,
        DEPLOYMENT.kind,
        seen.key.name,
        seen.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def derive_links(seen: Seen, ordinal: int) -> tuple[dict[str, str], dict[str, str]]:
    """The seven linking labels of a slot, and annotations with what a label could not hold."""
    workload = member_object(seen.spec, "workloadRef")
    texts = {
        labels.WORKLOAD_UID: member_text(workload, "uid"),
        labels.WORKLOAD_NAME: member_text(workload, "name"),
        labels.WORKLOAD_DEPLOYMENT_UID: seen.metadata.uid,
        labels.WORKLOAD_DEPLOYMENT_NAME: seen.key.name,
        labels.PLACEMENT_NAME: member_text(seen.spec, "placementName"),
        labels.CITY_CODE: seen.city_code,
        labels.INSTANCE_INDEX: str(ordinal),
    }
    values = {key: names.derive_label_value(text) for key, text in texts.items()}
    full = {key: value.full for key, value in values.items() if value.full is not None}
    return {key: value.value for key, value in values.items()}, full


def build_instance(seen: Seen, ordinal: int, *, location: str, has_network_gate: bool) -> Ensure:
    """A new Instance for a slot; every call gives fresh maps, none is shared with the template."""
    name = names.derive_instance_name(seen.key.name, ordinal)
    links, full = derive_links(seen, ordinal)
    rendered = render(seen.template)
    gates = (labels.NETWORK_GATE,) if has_network_gate else ()
    spec: dict[str, JsonValue] = {**rendered.spec}
    if location:
        spec["location"] = refer_to_location(location)
    spec["controller"] = {
        "templateHash": seen.template_hash,
        "schedulingGates": [{"name": gate} for gate in (*gates, labels.QUOTA_GATE)],
    }
    born: JsonMapping = {
        "metadata": {
            "labels": {**rendered.labels, **links},
            "annotations": {**rendered.annotations, **full},
        },
        "spec": spec,
    }
    key = ObjectKey(seen.key.plane, INSTANCE, seen.key.namespace, name)
    # Whose it is tells whether a name that is taken is taken by us (cell.md 5.4).
    wanted = Owned(owners=(refer_to_owner(seen),))
    under = OnlyUnder(seen.key, lock=seen.key, uid=seen.metadata.uid)
    return Ensure(key, wanted, reasons.SLOT_MISSING, initial=born, only_under=under)
