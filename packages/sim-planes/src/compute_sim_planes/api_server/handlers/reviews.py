"""Reviews: questions about tokens and rights that are asked by creating an object which is never
stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_sim_planes.api_server import api_errors, field_problems
from compute_sim_planes.api_server.answers import answer_json
from compute_sim_planes.api_server.authorization import Attributes
from compute_sim_planes.api_server.bodies import parse_object
from compute_sim_planes.api_server.call import Call
from compute_sim_planes.api_server.identity import User
from compute_sim_planes.api_server.transport import Answer
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    string_at,
    strings_at,
)

# Kinds of reviews are told from all others by being creatable and nothing else.
VERBS: Final = ("create",)


async def review(call: Call) -> Answer:
    wanted = parse_object(call)
    status = _REVIEWS[call.kind.plural](call, wanted)
    return answer_json({**wanted, "status": status}, 201, call.warnings)


def _review_subject(call: Call, wanted: JsonObject) -> JsonObject:
    spec = object_at(wanted, "spec")
    if not string_at(spec, "user") and not strings_at(spec, "groups"):
        detail = "at least one of user or group must be specified"
        problem = field_problems.invalid("spec.user", string_at(spec, "user"), detail)
        raise api_errors.invalid_kind(call.kind.group, "", "", [problem])
    extra = tuple(
        (name, tuple(strings_at(object_at(spec, "extra"), name)))
        for name in object_at(spec, "extra")
    )
    user = User(
        string_at(spec, "user"), tuple(strings_at(spec, "groups")), string_at(spec, "uid"), extra
    )
    return _verdict(call, user, spec)


def _review_self(call: Call, wanted: JsonObject) -> JsonObject:
    return _verdict(call, call.user, object_at(wanted, "spec"))


def _verdict(call: Call, user: User, spec: JsonObject) -> JsonObject:
    verdict = call.state.authorizer.authorize(user, _attributes(call, spec))
    status: JsonObject = {"allowed": verdict.allowed}
    if verdict.reason:
        status["reason"] = verdict.reason
    return status


def _attributes(call: Call, spec: JsonObject) -> Attributes:
    resource, other = (
        object_at(spec, "resourceAttributes"),
        object_at(spec, "nonResourceAttributes"),
    )
    if bool(resource) == bool(other):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        problem = field_problems.invalid("spec.resourceAttributes", dict(resource) or None, detail)
        raise api_errors.invalid_kind(call.kind.group, "", "", [problem])
    if other:
        return Attributes(verb=string_at(other, "verb"), path=string_at(other, "path"))
    return Attributes(
        verb=string_at(resource, "verb"),
        group=string_at(resource, "group"),
        version=string_at(resource, "version"),
        resource=string_at(resource, "resource"),
        subresource=string_at(resource, "subresource"),
        namespace=string_at(resource, "namespace"),
        name=string_at(resource, "name"),
    )


def _review_token(call: Call, wanted: JsonObject) -> JsonObject:
    token = string_at(wanted, "spec", "token")
    if not token:
        raise api_errors.bad_request("token is required for TokenReview in authentication")
    user = call.state.tokens.review(token)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user.as_json()}


def _review_own_identity(call: Call, wanted: JsonObject) -> JsonObject:
    del wanted
    return {"userInfo": call.user.as_json()}


def _review_own_rules(call: Call, wanted: JsonObject) -> JsonObject:
    """Which rules hold for the asker is a list only RBAC could give; the answer says it is
    incomplete.
    """
    del call, wanted
    rules: list[JsonValue] = []
    return {
        "resourceRules": rules,
        "nonResourceRules": rules,
        "incomplete": True,
        "evaluationError": "rules are not listed by this server; ask for one right at a time",
    }


_REVIEWS: Final[dict[str, Callable[[Call, JsonObject], JsonObject]]] = {
    "localsubjectaccessreviews": _review_subject,
    "selfsubjectaccessreviews": _review_self,
    "selfsubjectreviews": _review_own_identity,
    "selfsubjectrulesreviews": _review_own_rules,
    "subjectaccessreviews": _review_subject,
    "tokenreviews": _review_token,
}
