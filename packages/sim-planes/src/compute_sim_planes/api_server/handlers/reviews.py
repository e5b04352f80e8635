"""Handlers of reviews: questions about tokens and permissions as objects that are never stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.authz.authorizer import Attributes
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.http.request import ApiRequest
from compute_sim_planes.api_server.http.request_bodies import parse_object
from compute_sim_planes.api_server.http.responses import json_response
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    string_at,
    strings_at,
)

# Kinds with `create` as their only verb are reviews.
VERBS: Final = ("create",)


async def review(call: ApiRequest) -> Response:
    desired = parse_object(call)
    status = _REVIEWS[call.kind.plural](call, desired)
    return json_response({**desired, "status": status}, 201, call.warnings)


def _review_subject(call: ApiRequest, desired: JsonObject) -> JsonObject:
    spec = object_at(desired, "spec")
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


def _review_self(call: ApiRequest, desired: JsonObject) -> JsonObject:
    return _verdict(call, call.user, object_at(desired, "spec"))


def _verdict(call: ApiRequest, user: User, spec: JsonObject) -> JsonObject:
    verdict = call.state.authorizer.authorize(user, _attributes(call, spec))
    status: JsonObject = {"allowed": verdict.allowed}
    if verdict.reason:
        status["reason"] = verdict.reason
    return status


def _attributes(call: ApiRequest, spec: JsonObject) -> Attributes:
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


def _review_token(call: ApiRequest, desired: JsonObject) -> JsonObject:
    token = string_at(desired, "spec", "token")
    if not token:
        raise api_errors.bad_request("token is required for TokenReview in authentication")
    user = call.state.tokens.review(token)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user.as_json()}


def _review_own_identity(call: ApiRequest, desired: JsonObject) -> JsonObject:
    del desired
    return {"userInfo": call.user.as_json()}


def _review_own_rules(call: ApiRequest, desired: JsonObject) -> JsonObject:
    """Always incomplete: an authorizer decides single requests and cannot list its rules."""
    del call, desired
    rules: list[JsonValue] = []
    return {
        "resourceRules": rules,
        "nonResourceRules": rules,
        "incomplete": True,
        "evaluationError": "rules are not listed by this server; ask for one right at a time",
    }


_REVIEWS: Final[dict[str, Callable[[ApiRequest, JsonObject], JsonObject]]] = {
    "localsubjectaccessreviews": _review_subject,
    "selfsubjectaccessreviews": _review_self,
    "selfsubjectreviews": _review_own_identity,
    "selfsubjectrulesreviews": _review_own_rules,
    "subjectaccessreviews": _review_subject,
    "tokenreviews": _review_token,
}
