"""The JSON schema of a `Diagnosis` document, for programs that read it and for the tests.

Objects allow further fields: a later release adds some and takes none away.
"""

from __future__ import annotations

from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.explain.causes import Actionability
from compute_kubectl.explain.diagnosis import Level, Verdict
from compute_kubectl.explain.stages import Stage
from compute_kubectl.render.documents import API_VERSION
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.planes import Role

_TEXT: Final[JsonObject] = {"type": "string"}
_NUMBER: Final[JsonObject] = {"type": "integer", "minimum": 0}
_MOMENT: Final[JsonObject] = {
    "type": ["string", "null"],
    "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$",
}
_SECONDS: Final[JsonObject] = {"type": ["integer", "null"], "minimum": 0}


def _object(**members: JsonValue) -> JsonObject:
    required: list[JsonValue] = [*sorted(members)]
    return {"type": "object", "properties": members, "required": required}


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def _one_of(*words: str) -> JsonObject:
    return {"enum": [*words]}


_NAME: Final = _object(plane=_TEXT, kind=_TEXT, namespace=_TEXT, name=_TEXT)
_EVIDENCE: Final = _object(
    plane=_TEXT, kind=_TEXT, namespace=_TEXT, name=_TEXT, field=_TEXT, value=_TEXT
)
_COUNTS: Final = _object(total=_NUMBER, ready=_NUMBER, blocked=_NUMBER)
_ACTS: Final = _one_of("", *(one.value for one in Actionability))
_VERDICTS: Final = _one_of(*(one.value for one in Verdict))
_STATES: Final = _one_of(*(one.value for one in Access))
_CITY: Final = _object(
    placement=_TEXT,
    cityCode=_TEXT,
    cell=_TEXT,
    deployment=_TEXT,
    verdict=_VERDICTS,
    instances=_COUNTS,
    stage={"type": ["integer", "null"], "minimum": 1, "maximum": len(Stage)},
    stageName=_TEXT,
    since=_MOMENT,
    inStateFor=_SECONDS,
    within=_SECONDS,
    owner=_TEXT,
    actionability=_ACTS,
    reason=_TEXT,
    message=_TEXT,
    text=_TEXT,
    details=_list(_TEXT),
    remediation=_TEXT,
    evidence=_list(_EVIDENCE),
    notVisible=_list(_TEXT),
    notes=_list(_TEXT),
)

SCHEMA: Final[JsonObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Diagnosis",
    **_object(
        apiVersion={"const": API_VERSION},
        kind={"const": "Diagnosis"},
        workload=_object(namespace=_TEXT, name=_TEXT, uid=_TEXT, generation=_NUMBER),
        verdict=_VERDICTS,
        level=_one_of(*(one.value for one in Level)),
        object={"anyOf": [_NAME, {"type": "null"}]},
        conditionType=_TEXT,
        status=_TEXT,
        reason=_TEXT,
        message=_TEXT,
        lastTransitionTime=_MOMENT,
        inStateFor=_SECONDS,
        actionability=_ACTS,
        explanation=_TEXT,
        remediation=_TEXT,
        nextSteps=_list(_TEXT),
        instances=_COUNTS,
        contributingConditions=_list(_EVIDENCE),
        planes=_list(
            _object(
                name=_TEXT,
                role=_one_of(*(one.value for one in Role)),
                state=_STATES,
                readAt=_MOMENT,
                detail=_TEXT,
            )
        ),
        unread=_list(_object(plane=_TEXT, kind=_TEXT, state=_STATES)),
        cities=_list(_CITY),
        contradictions=_list(
            _object(text=_TEXT, first={"$ref": "#/$defs/side"}, second={"$ref": "#/$defs/side"})
        ),
        similar=_list(_TEXT),
    ),
    "$defs": {"side": {"allOf": [_EVIDENCE, _object(since=_MOMENT)]}},
}
