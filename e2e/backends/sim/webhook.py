"""The management operator's admission webhook, as a simulated API server calls it.

Virtual time has no sockets and no kopf: a review is passed to the operator's own `review`, and its
answer is encoded as the webhook host does. Every replica serves it, leader or not.
"""

from __future__ import annotations

import orjson

from compute_management_operator.admission.review import AdmissionAllowed
from compute_management_operator.wiring import ManagementOperator
from compute_sim_planes.api_server.admission.webhook_clients import WebhookCallError
from compute_sim_planes.json_types import JsonObject, JsonValue, string_at
from e2e.backends.sim.replicas import SimReplicas


async def answer_review(replicas: SimReplicas, review: JsonObject) -> JsonObject:
    """The answer of the first running replica; without one the connection is refused."""
    operators = [one.operator for one in replicas.alive if not one.life.is_dead]
    management = next((one for one in operators if isinstance(one, ManagementOperator)), None)
    if management is None:
        raise WebhookCallError("dial tcp: connection refused")
    verdict = await management.admission.review(orjson.loads(orjson.dumps(review)))
    response: JsonObject = {
        "uid": string_at(review, "request", "uid"),
        "allowed": isinstance(verdict, AdmissionAllowed),
    }
    if isinstance(verdict, AdmissionAllowed):
        response["warnings"] = list[JsonValue](verdict.warnings)
    else:
        response["status"] = orjson.loads(orjson.dumps(verdict.status))
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
