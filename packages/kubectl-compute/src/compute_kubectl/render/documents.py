"""`why` as JSON: `diagnostics.compute.datumapis.com/v1alpha1`, kind `Diagnosis`.

Fields are only ever added: programs and assistants read them. Texts are cleaned as on a terminal,
because a reader may print them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from compute_api_types.meta import format_timestamp
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.explain.causes import explanation_of
from compute_kubectl.explain.diagnosis import (
    CityDiagnosis,
    Contradiction,
    Diagnosis,
    Evidence,
    Finding,
    ObjectName,
)
from compute_kubectl.explain.explain import within_of
from compute_kubectl.render import words
from compute_kubectl.render.layout import clean
from compute_kubectl.snapshot.planes import PlaneFacts, Unread

API_VERSION: Final = "diagnostics.compute.datumapis.com/v1alpha1"


def document_of(diagnosis: Diagnosis) -> JsonObject:
    """The JSON document of a diagnosis."""
    finding = diagnosis.finding
    contributing: list[JsonValue] = [_evidence(one) for one in diagnosis.conditions]
    return {
        "apiVersion": API_VERSION,
        "kind": "Diagnosis",
        "workload": {
            "namespace": clean(diagnosis.namespace),
            "name": clean(diagnosis.name),
            "uid": clean(diagnosis.uid),
            "generation": diagnosis.generation,
        },
        "verdict": diagnosis.verdict.value,
        **_of_finding(diagnosis, finding),
        "actionability": diagnosis.actionability.value if diagnosis.actionability else "",
        "inStateFor": seconds_of(diagnosis.age),
        "instances": {
            "total": diagnosis.desired,
            "ready": diagnosis.ready,
            "blocked": sum(city.blocked for city in diagnosis.cities),
        },
        "contributingConditions": contributing,
        "planes": [plane_document(one) for one in diagnosis.planes],
        "unread": [unread_document(one) for one in diagnosis.unread],
        "cities": [_city(diagnosis, city) for city in diagnosis.cities],
        "contradictions": [_contradiction(one) for one in diagnosis.contradictions],
        "similar": [clean(one) for one in diagnosis.similar],
    }


def _of_finding(diagnosis: Diagnosis, finding: Finding | None) -> JsonObject:
    if finding is None:
        return {
            "level": "Workload",
            "object": None,
            "conditionType": "",
            "status": "",
            "reason": "",
            "message": "",
            "lastTransitionTime": None,
            "explanation": "",
            "remediation": "",
            "nextSteps": [],
        }
    remedy = clean(words.remedy_of(diagnosis, finding, diagnosis.actionability))
    steps: list[JsonValue] = [remedy, *(clean(one) for one in finding.details)]
    return {
        "level": finding.level.value,
        "object": object_document(finding.object),
        "conditionType": clean(finding.condition_type),
        "status": clean(finding.status),
        "reason": clean(finding.reason),
        "message": clean(finding.message or finding.text),
        "lastTransitionTime": moment_text(finding.since),
        "explanation": clean(explanation_of(finding.reason) or finding.text),
        "remediation": remedy,
        "nextSteps": steps,
    }


def object_document(one: ObjectName | None) -> JsonObject | None:
    if one is None:
        return None
    return {
        "plane": clean(one.plane),
        "kind": clean(one.kind),
        "namespace": clean(one.namespace),
        "name": clean(one.name),
    }


def _evidence(one: Evidence) -> JsonObject:
    return {
        **(object_document(one.object) or {}),
        "field": clean(one.field),
        "value": clean(one.value),
    }


def plane_document(one: PlaneFacts) -> JsonObject:
    return {
        "name": clean(one.name),
        "role": one.role.value,
        "state": one.access.value,
        "readAt": moment_text(one.at),
        "detail": clean(one.detail),
    }


def unread_document(one: Unread) -> JsonObject:
    return {"plane": clean(one.plane), "kind": clean(one.kind), "state": one.access.value}


def _city(diagnosis: Diagnosis, city: CityDiagnosis) -> JsonObject:
    finding = city.finding
    evidence: list[JsonValue] = []
    if finding is not None:
        evidence = [_evidence(one) for one in finding.evidence]
    return {
        "placement": clean(city.placement),
        "cityCode": clean(city.city),
        "cell": clean(city.cell),
        "deployment": clean(city.deployment),
        "verdict": city.verdict.value,
        "instances": {"total": city.desired, "ready": city.ready, "blocked": city.blocked},
        "stage": finding.stage.value if finding else None,
        "stageName": finding.stage.label if finding else "",
        "since": moment_text(finding.since) if finding else None,
        "inStateFor": seconds_of(city.age),
        "within": seconds_of(within_of(finding)) if finding else None,
        "owner": clean(finding.owner) if finding else "",
        "actionability": city.actionability.value if city.actionability else "",
        "reason": clean(finding.reason) if finding else "",
        "message": clean(finding.message) if finding else "",
        "text": clean(finding.text) if finding else "",
        "details": [clean(one) for one in finding.details] if finding else [],
        "remediation": (
            clean(words.remedy_of(diagnosis, finding, city.actionability)) if finding else ""
        ),
        "evidence": evidence,
        "notVisible": [clean(one) for one in city.hidden],
        "notes": [clean(one) for one in city.notes],
    }


def _contradiction(one: Contradiction) -> JsonObject:
    return {
        "text": clean(one.text),
        "first": {**_evidence(one.first), "since": moment_text(one.first_at)},
        "second": {**_evidence(one.second), "since": moment_text(one.second_at)},
    }


def moment_text(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)


def seconds_of(age: timedelta | None) -> int | None:
    return None if age is None else int(age.total_seconds())
