"""The Instance of a slot as it is created: spec, linking labels and owner reference. Pure (cell.md
5.1).

The owner reference is compared on every create: a name that another deployment's Instance has must
not be taken for ours (cell.md 5.4).
"""

from __future__ import annotations

from compute_api_types import labels, names, reasons
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan.location import refer_to_location
from compute_cell_operator.planes import DEPLOYMENT, INSTANCE
from compute_operator_kit.core.json import JsonMapping, JsonValue
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import OwnerReference
from compute_operator_kit.intents.intents import Ensure, OwnedFields, RequireExists


def refer_to_owner(observed: ObservedDeployment) -> OwnerReference:
    return OwnerReference(
        DEPLOYMENT.api_version,
        DEPLOYMENT.kind,
        observed.key.name,
        observed.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def derive_links(
    observed: ObservedDeployment, ordinal: int
) -> tuple[dict[str, str], dict[str, str]]:
    """The seven linking labels of a slot, and annotations with the values a label cannot hold."""
    spec = observed.spec
    texts = {
        labels.WORKLOAD_UID: spec.workload_uid,
        labels.WORKLOAD_NAME: spec.workload_name,
        labels.WORKLOAD_DEPLOYMENT_UID: observed.metadata.uid,
        labels.WORKLOAD_DEPLOYMENT_NAME: observed.key.name,
        labels.PLACEMENT_NAME: spec.placement_name,
        labels.CITY_CODE: spec.city_code,
        labels.INSTANCE_INDEX: str(ordinal),
    }
    values = {key: names.derive_label_value(text) for key, text in texts.items()}
    full = {key: value.full for key, value in values.items() if value.full is not None}
    return {key: value.value for key, value in values.items()}, full


def build_instance(
    observed: ObservedDeployment,
    ordinal: int,
    *,
    location: str,
    has_network_gate: bool,
    has_data_gate: bool = False,
) -> Ensure:
    """A new Instance for a slot, in new maps with every call."""
    name = names.derive_instance_name(observed.key.name, ordinal)
    links, full = derive_links(observed, ordinal)
    gates = (
        *((labels.NETWORK_GATE,) if has_network_gate else ()),
        labels.QUOTA_GATE,
        *((labels.REFERENCED_DATA_GATE,) if has_data_gate else ()),
    )
    spec: dict[str, JsonValue] = {**observed.template.spec}
    if location:
        spec["location"] = refer_to_location(location)
    spec["controller"] = {
        "templateHash": observed.template_hash,
        "schedulingGates": [{"name": gate} for gate in gates],
    }
    initial: JsonMapping = {
        "metadata": {
            "labels": {**observed.template.labels, **links},
            "annotations": {**observed.template.annotations, **full},
        },
        "spec": spec,
    }
    key = ObjectKey(observed.key.plane, INSTANCE, observed.key.namespace, name)
    desired = OwnedFields(owners=(refer_to_owner(observed),))
    under = RequireExists(observed.key, lock=observed.key, uid=observed.metadata.uid)
    return Ensure(key, desired, reasons.SLOT_MISSING, initial=initial, requires=under)
