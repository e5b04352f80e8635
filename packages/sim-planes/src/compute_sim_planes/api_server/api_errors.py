"""Refusals of the server, each with code, reason, words and details of a real kube-apiserver.

Clients branch on code and reason, users read the message, and both of our operators' ports are
tested on them; so the texts live here and nowhere else. An error is raised where it is found and
becomes a `Status` body in one place.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from compute_sim_planes.api_server.field_problems import FieldProblem, join_problems
from compute_sim_planes.api_server.kinds import GroupResource, Kind
from compute_sim_planes.json_types import JsonObject, JsonValue, array_at

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
STALE_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class ApiError(Exception):
    """An answer that is no success."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: JsonObject | None = None,
        list_metadata: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.list_metadata = list_metadata

    def add_cause(self, cause: JsonObject) -> None:
        """Say more in the details, where machines look."""
        details = dict(self.details or {})
        details["causes"] = [*array_at(details, "causes"), cause]
        self.details = details

    def body(self) -> JsonObject:
        """The `Status` that goes over the wire."""
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_metadata or {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def retry_after(self) -> int | None:
        """Whole seconds for the `Retry-After` header."""
        seconds = (self.details or {}).get("retryAfterSeconds")
        return seconds if isinstance(seconds, int) else None


def _details(resource: GroupResource, name: str) -> JsonObject:
    """`kind` holds the plural: a real server does so too, and clients have learnt it."""
    details: JsonObject = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.resource
    return details


def not_found(resource: GroupResource, name: str) -> ApiError:
    message = f'{resource} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(resource, name))


def no_such_resource() -> ApiError:
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, details={})


def already_exists(resource: GroupResource, name: str) -> ApiError:
    message = f'{resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: GroupResource, name: str, why: str = MODIFIED) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(resource, name))


def apply_conflict(message: str, causes: list[JsonValue]) -> ApiError:
    return ApiError(409, "Conflict", message, details={"causes": causes})


def invalid(kind: Kind, name: str, problems: list[FieldProblem]) -> ApiError:
    return invalid_kind(kind.group, kind.kind, name, problems)


def invalid_kind(group: str, kind: str, name: str, problems: list[FieldProblem]) -> ApiError:
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {join_problems(problems)}'
    details: JsonObject = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = [problem.cause() for problem in problems]
    return ApiError(422, "Invalid", message, details=details)


def invalid_options(kind: str, problems: list[FieldProblem]) -> ApiError:
    """A problem of the request's own options, to a real server a kind of `meta.k8s.io`."""
    return invalid_kind("meta.k8s.io", kind, "", problems)


def patch_failed() -> ApiError:
    """A JSON patch that could not be carried out. A real server does not say why."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message, details={})


def unexplained(message: str) -> ApiError:
    """An error of the storage that a real server hands on as it is: no reason, no details."""
    return ApiError(500, "", message)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: GroupResource, name: str, why: str) -> ApiError:
    subject = f'{resource} "{name}"' if name else str(resource)
    message = f"{subject} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, details=_details(resource, name))


def forbidden_path(why: str) -> ApiError:
    return ApiError(403, "Forbidden", f"forbidden: {why}", details={})


def namespace_terminating(resource: GroupResource, name: str, namespace: str) -> ApiError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refused = forbidden(resource, name, why)
    cause: JsonObject = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refused.add_cause(cause)
    return refused


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})


def method_not_supported(resource: GroupResource, verb: str) -> ApiError:
    """The same for a kind from a CRD, where a real server can name both."""
    message = f'{verb} is not supported on resources of kind "{resource}"'
    return ApiError(405, "MethodNotAllowed", message, details=_details(resource, ""))


def not_acceptable() -> ApiError:
    message = (
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf"
    )
    return ApiError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: tuple[str, ...]) -> ApiError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return ApiError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> ApiError:
    message = f"Request entity too large: limit is {limit}"
    return ApiError(413, "RequestEntityTooLarge", message)


def expired(message: str, *, continue_token: str = "") -> ApiError:
    list_metadata: JsonObject = {"continue": continue_token} if continue_token else {}
    return ApiError(410, "Expired", message, list_metadata=list_metadata)


def too_large_version(asked: int, current: int) -> ApiError:
    """A version this plane has not reached: to a real server a timeout, since it waited for it."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    cause: JsonObject = {
        "reason": "ResourceVersionTooLarge",
        "message": "Too large resource version",
    }
    return ApiError(504, "Timeout", message, details={"causes": [cause], "retryAfterSeconds": 1})


def internal(why: str) -> ApiError:
    details: JsonObject = {"causes": [{"message": why}]}
    return ApiError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "InternalError",
        f"Internal error occurred: {why}",
        details=details,
    )
