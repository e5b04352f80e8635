"""API errors with the code, reason, message and details of a real kube-apiserver.

Clients branch on code and reason, users read the message, and the operators' clients are tested
with both, so all texts are defined here only. An error is raised where it is detected; `dispatch`
turns it into a `Status` body.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind
from compute_sim_planes.api_server.schema.field_problems import FieldProblem, join_problems
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


class StatusError(Exception):
    """A request that failed, with the contents of its `Status`."""

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
        """Append an entry to `details.causes`."""
        details = dict(self.details or {})
        details["causes"] = [*array_at(details, "causes"), cause]
        self.details = details

    def body(self) -> JsonObject:
        """The `Status` object of the response."""
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
    """`kind` holds the plural, as on a real server; clients depend on it."""
    details: JsonObject = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.resource
    return details


def not_found(resource: GroupResource, name: str) -> StatusError:
    message = f'{resource} "{name}" not found'
    return StatusError(404, "NotFound", message, details=_details(resource, name))


def no_such_resource() -> StatusError:
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, details={})


def already_exists(resource: GroupResource, name: str) -> StatusError:
    message = f'{resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: GroupResource, name: str, why: str = MODIFIED) -> StatusError:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(resource, name))


def apply_conflict(message: str, causes: list[JsonValue]) -> StatusError:
    return StatusError(409, "Conflict", message, details={"causes": causes})


def invalid(kind: Kind, name: str, problems: list[FieldProblem]) -> StatusError:
    return invalid_kind(kind.group, kind.kind, name, problems)


def invalid_kind(group: str, kind: str, name: str, problems: list[FieldProblem]) -> StatusError:
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {join_problems(problems)}'
    details: JsonObject = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = [problem.cause() for problem in problems]
    return StatusError(422, "Invalid", message, details=details)


def invalid_options(kind: str, problems: list[FieldProblem]) -> StatusError:
    """A problem in the options of a request, which a real server reports as a kind of
    `meta.k8s.io`.
    """
    return invalid_kind("meta.k8s.io", kind, "", problems)


def patch_failed() -> StatusError:
    """A JSON patch that could not be applied; a real server gives no cause."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, details={})


def unexplained(message: str) -> StatusError:
    """A storage error that a real server passes on unchanged: no reason, no details."""
    return StatusError(500, "", message)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: GroupResource, name: str, why: str) -> StatusError:
    subject = f'{resource} "{name}"' if name else str(resource)
    message = f"{subject} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, details=_details(resource, name))


def forbidden_path(why: str) -> StatusError:
    return StatusError(403, "Forbidden", f"forbidden: {why}", details={})


def namespace_terminating(resource: GroupResource, name: str, namespace: str) -> StatusError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refused = forbidden(resource, name, why)
    cause: JsonObject = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    refused.add_cause(cause)
    return refused


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def method_not_supported(resource: GroupResource, verb: str) -> StatusError:
    """The same for a kind from a CRD, where a real server names verb and resource."""
    message = f'{verb} is not supported on resources of kind "{resource}"'
    return StatusError(405, "MethodNotAllowed", message, details=_details(resource, ""))


def not_acceptable() -> StatusError:
    message = (
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf"
    )
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: tuple[str, ...]) -> StatusError:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> StatusError:
    message = f"Request entity too large: limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", message)


def expired(message: str, *, continue_token: str = "") -> StatusError:
    list_metadata: JsonObject = {"continue": continue_token} if continue_token else {}
    return StatusError(410, "Expired", message, list_metadata=list_metadata)


def too_large_version(asked: int, current: int) -> StatusError:
    """A resourceVersion that the plane has not reached: a timeout, because a real server waits for
    it.
    """
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    cause: JsonObject = {
        "reason": "ResourceVersionTooLarge",
        "message": "Too large resource version",
    }
    return StatusError(504, "Timeout", message, details={"causes": [cause], "retryAfterSeconds": 1})


def internal(why: str) -> StatusError:
    details: JsonObject = {"causes": [{"message": why}]}
    return StatusError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "InternalError",
        f"Internal error occurred: {why}",
        details=details,
    )
