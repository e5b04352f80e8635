"""AdmissionReviews as an API server sends and gets them."""

from __future__ import annotations

from compute_management_operator.admission.review import AdmissionAllowed
from compute_management_operator.admission.review import AdmissionResult as Verdict
from compute_management_operator.planes import WORKLOAD
from compute_operator_kit.core.json import Json, JsonObject, decode_json_object, encode
from compute_sim_planes.json_types import JsonObject as Manifest


def a_review(
    wanted: JsonObject, extra: JsonObject, *, found: JsonObject | None = None, user: str = "user"
) -> JsonObject:
    """An AdmissionReview as an API server sends it; `user` may do everything, others nothing."""
    groups: list[Json] = ["system:masters"] if user == "user" else []
    request: JsonObject = {
        "uid": "review-1",
        "operation": "CREATE" if found is None else "UPDATE",
        "userInfo": {"username": user, "uid": "1", "groups": groups, "extra": extra},
        "object": wanted,
        "oldObject": found,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def as_review(review: Manifest, verdict: Verdict) -> JsonObject:
    """The answer on the wire, as the front door's host gives it."""
    request = review["request"]
    assert isinstance(request, dict)
    response: JsonObject = {
        "uid": str(request["uid"]),
        "allowed": isinstance(verdict, AdmissionAllowed),
    }
    if isinstance(verdict, AdmissionAllowed):
        response["warnings"] = [*verdict.warnings]
    else:
        response["status"] = decode_json_object(encode(verdict.status))
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def a_webhook_configuration(url: str) -> Manifest:
    rule: Manifest = {
        "apiGroups": [WORKLOAD.group],
        "apiVersions": [WORKLOAD.version],
        "resources": [WORKLOAD.plural],
        "operations": ["CREATE", "UPDATE"],
    }
    webhook: Manifest = {
        "name": "vworkload.kb.io",
        "clientConfig": {"url": url},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "compute-validating"},
        "webhooks": [webhook],
    }
