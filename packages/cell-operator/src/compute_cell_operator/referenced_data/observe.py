"""Cache reads of referenced data: the copies in a namespace, for a deployment and for an Instance.

A cache that is incomplete gives `UNREAD`: an object that cannot be looked up is not missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compute_api_types import labels
from compute_api_types.referenced_data.references import CONFIG_MAP as CONFIG_MAP_KIND
from compute_api_types.referenced_data.references import Reference, references
from compute_api_types.template_hash import HashVerdict, is_template_hash, judge_template_hash
from compute_cell_operator.instance_facts import read_gates
from compute_cell_operator.planes import CONFIG_MAP, DEPLOYMENT, SECRET
from compute_cell_operator.referenced_data.judgement import (
    UNREAD,
    DataMode,
    DataVerdict,
    judge_copies,
    judge_sources,
)
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.objects import Metadata, Snapshot, Unreadable


def observe_data(
    deployment: Metadata, template: JsonObject, plane: PlaneName, caches: Caches, mode: DataMode
) -> DataVerdict | None:
    """Of the current template of a deployment; None where its Instances wait for nothing."""
    named = references(template) if mode is not DataMode.OFF else ()
    if not named:
        return None
    present = _observe_objects(named, deployment.namespace, plane, caches, mode)
    if present is None:
        return UNREAD
    if mode is DataMode.SOURCES:
        return judge_sources(named, deployment.namespace, present)
    return judge_copies(named, deployment.annotations, present)


def observe_data_of(
    instance: Snapshot, body: JsonObject, caches: Caches, mode: DataMode
) -> DataVerdict | None:
    """Of an Instance behind the gate; None where it has none, or its own template is not that of
    its deployment any more: what is expected there is not about it.
    """
    spec = member_object(body, "spec")
    owner = instance.metadata.controller
    if mode is DataMode.OFF or owner is None or owner.kind != DEPLOYMENT.kind or not owner.name:
        return None
    if labels.REFERENCED_DATA_GATE not in read_gates(spec):
        return None
    plane, namespace = instance.key.plane, instance.key.namespace
    deployment = caches.lister(plane, DEPLOYMENT).get(namespace, owner.name)
    if not isinstance(deployment, Snapshot) or deployment.metadata.uid != owner.uid:
        return None
    template = member_object(member_object(deployment.read(), "spec"), "template")
    if not _is_current(instance.metadata, spec, template):
        return None
    return observe_data(deployment.metadata, template, plane, caches, mode)


def _is_current(instance: Metadata, spec: JsonObject, template: JsonObject) -> bool:
    """An adopted Instance is compared by our hash, which its deployment records first."""
    recorded = member_text(member_object(spec, "controller"), "templateHash")
    if not is_template_hash(recorded):
        recorded = instance.annotations.get(labels.ADOPTED_TEMPLATE_HASH, "")
    if not is_template_hash(recorded):
        return False
    return judge_template_hash(recorded, template) is HashVerdict.CURRENT


def _observe_objects(
    named: Sequence[Reference],
    namespace: str,
    plane: PlaneName,
    caches: Caches,
    mode: DataMode,
) -> Mapping[str, str] | None:
    """Source version of each live object by token; None where a cache is incomplete.

    In a federation only what carries our label: an object of that name which somebody made in the
    cell is not the user's. One that is being deleted is absent.
    """
    present: dict[str, str] = {}
    for reference in named:
        kind = CONFIG_MAP if reference.kind == CONFIG_MAP_KIND else SECRET
        existing = caches.lister(plane, kind).get(namespace, reference.name)
        if isinstance(existing, Unreadable):
            return None
        if isinstance(existing, Snapshot) and _counts(existing.metadata, mode):
            present[reference.token] = existing.metadata.annotations.get(labels.SOURCE_VERSION, "")
    return present


def _counts(metadata: Metadata, mode: DataMode) -> bool:
    is_labelled = metadata.labels.get(labels.REFERENCED_DATA) == labels.IS_REFERENCED_DATA
    return not metadata.is_deleting and (mode is DataMode.SOURCES or is_labelled)
