"""The admission webhook of the management operator, as a simulated API server calls it.

Under virtual time there is no socket and no kopf: a review goes to the operator's own `review` and
its answer is put on the wire as the front door's host does. Every replica serves it, leader or not.
"""

from __future__ import annotations

import orjson

from compute_management_operator.admission.review import Admitted
from compute_management_operator.wiring import Operator
from compute_sim_planes.api_server.webhook_callers import WebhookCallError
from compute_sim_planes.json_types import JsonObject, JsonValue, string_at
from e2e.backends.sim.crews import Crew


async def answer_review(crew: Crew, review: JsonObject) -> JsonObject:
    """The answer of the first replica that lives; without one the connection is refused."""
    operators = [one.operator for one in crew.alive if not one.life.is_dead]
    found = next((one for one in operators if isinstance(one, Operator)), None)
    if found is None:
        raise WebhookCallError("dial tcp: connection refused")
    verdict = await found.admission.review(orjson.loads(orjson.dumps(review)))
    response: JsonObject = {
        "uid": string_at(review, "request", "uid"),
        "allowed": isinstance(verdict, Admitted),
    }
    if isinstance(verdict, Admitted):
        response["warnings"] = list[JsonValue](verdict.warnings)
    else:
        response["status"] = orjson.loads(orjson.dumps(verdict.status))
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
