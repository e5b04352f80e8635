"""Decoders of Workload, WorkloadDeployment and Instance.

Templates are reduced to their hash and to the names they refer to: env values, arguments and
commands are never part of a snapshot.
"""

from __future__ import annotations

from typing import Final

from compute_api_types.template_hash import derive_template_hash
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.snapshot.decode_metadata import (
    decode_conditions,
    decode_meta,
    find_unreadable,
)
from compute_kubectl.snapshot.json_reads import (
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
    value_at,
)
from compute_kubectl.snapshot.objects import (
    Counters,
    SeenDeployment,
    SeenInstance,
    SeenPlacement,
    SeenWorkload,
)

# Of a saved document: its template is redacted, and its hash was kept.
DIAGNOSTICS: Final = "diagnostics"
TEMPLATE_HASH: Final = "templateHash"

# As many placements and cities as a Workload of a megabyte could name, and no more.
MOST_PLACEMENTS: Final = 10_000


def decode_workload(document: JsonObject) -> SeenWorkload:
    status = object_at(document, "status")
    template = value_at(document, "spec", "template")
    return SeenWorkload(
        meta=decode_meta(document),
        conditions=decode_conditions(status),
        unreadable=find_unreadable(document),
        placements=tuple(
            _decode_placement(entry) for entry in objects_at(document, "spec", "placements")
        )[:MOST_PLACEMENTS],
        template_hash=_hash(document, template),
        observed_generation=number_at(status, "observedGeneration") or 0,
        placement_conditions={
            text_at(entry, "name"): decode_conditions(entry)
            for entry in objects_at(status, "placements")
        },
        networks=_networks(template),
    )


def _decode_placement(entry: JsonObject) -> SeenPlacement:
    return SeenPlacement(
        name=text_at(entry, "name"),
        cities=texts_at(entry, "cityCodes"),
        min_replicas=max(number_at(entry, "scaleSettings", "minReplicas") or 0, 0),
        is_autoscaled=_is_autoscaled(entry),
    )


def _is_autoscaled(parent: JsonObject) -> bool:
    settings = object_at(parent, "scaleSettings")
    return number_at(settings, "maxReplicas") is not None and bool(objects_at(settings, "metrics"))


def decode_deployment(document: JsonObject) -> SeenDeployment:
    spec, status = object_at(document, "spec"), object_at(document, "status")
    uid = status.get("observedTemplateUID")
    return SeenDeployment(
        meta=decode_meta(document),
        conditions=decode_conditions(status),
        unreadable=find_unreadable(document),
        workload_name=text_at(spec, "workloadRef", "name"),
        workload_uid=text_at(spec, "workloadRef", "uid"),
        placement=text_at(spec, "placementName"),
        city=text_at(spec, "cityCode"),
        min_replicas=max(number_at(spec, "scaleSettings", "minReplicas") or 0, 0),
        is_autoscaled=_is_autoscaled(spec),
        template_hash=_hash(document, spec.get("template")),
        observed_generation=number_at(status, "observedGeneration") or 0,
        observed_template_generation=number_at(status, "observedTemplateGeneration"),
        observed_template_uid=uid if isinstance(uid, str) else None,
        counters=Counters(
            replicas=number_at(status, "replicas") or 0,
            desired=number_at(status, "desiredReplicas") or 0,
            ready=number_at(status, "readyReplicas") or 0,
            current=number_at(status, "currentReplicas") or 0,
            updated=number_at(status, "updatedReplicas") or 0,
        ),
    )


def decode_instance(document: JsonObject) -> SeenInstance:
    spec, status = object_at(document, "spec"), object_at(document, "status")
    gates = objects_at(spec, "controller", "schedulingGates")
    return SeenInstance(
        meta=decode_meta(document),
        conditions=decode_conditions(status),
        unreadable=find_unreadable(document),
        gates=tuple(text_at(gate, "name") for gate in gates),
        template_hash=text_at(spec, "controller", "templateHash"),
        observed_template_hash=text_at(status, "controller", "observedTemplateHash"),
        instance_type=text_at(spec, "runtime", "resources", "instanceType"),
    )


def _hash(document: JsonObject, template: JsonValue) -> str:
    saved = text_at(document, DIAGNOSTICS, TEMPLATE_HASH)
    return saved or (derive_template_hash(template) if isinstance(template, dict) else "")


def _networks(template: JsonValue) -> tuple[str, ...]:
    interfaces = objects_at(template, "spec", "networkInterfaces")
    names = (text_at(interface, "network", "name") for interface in interfaces)
    return tuple(sorted({name for name in names if name}))
