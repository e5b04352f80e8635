"""Failure answers, with the messages of a real Milo."""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

GROUP: Final = "quota.miloapis.com"


class Refusal(Exception):  # noqa: N818 - an answer, not a failure of the fake
    """A Kubernetes `Status` that ends the handling of a request."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, JsonValue] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers or {}
        self.body: dict[str, JsonValue] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
        if details is not None:
            self.body["details"] = details


def _details(resource: str, name: str) -> dict[str, JsonValue]:
    details: dict[str, JsonValue] = {"name": name, "kind": resource}
    if resource != "namespaces":
        details["group"] = GROUP
    return details


def _qualified(resource: str) -> str:
    return resource if resource == "namespaces" else f"{resource}.{GROUP}"


def not_found(resource: str, name: str) -> Refusal:
    """There is no such object."""
    message = f'{_qualified(resource)} "{name}" not found'
    return Refusal(404, "NotFound", message, _details(resource, name))


def already_exists(resource: str, name: str) -> Refusal:
    """There is one already."""
    message = f'{_qualified(resource)} "{name}" already exists'
    return Refusal(409, "AlreadyExists", message, _details(resource, name))


def forbidden(resource: str, user: str, verb: str, namespace: str | None) -> Refusal:
    """No rights."""
    where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    message = (
        f'{_qualified(resource)} is forbidden: User "{user}" cannot {verb} resource'
        f' "{resource}" in API group "{GROUP}"{where}'
    )
    return Refusal(403, "Forbidden", message, {"group": GROUP, "kind": resource})


def not_admitted(resource: str, kind: str, name: str, errors: list[str]) -> Refusal:
    """Refused by admission: 403 that wraps an Invalid, as in Milo."""
    listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    invalid_object = f'{kind}.{GROUP} "{name}" is invalid: {listed}'
    message = f'{_qualified(resource)} "{name}" is forbidden: {invalid_object}'
    return Refusal(403, "Forbidden", message, _details(resource, name))


def suspended(resource: str, name: str, project: str) -> Refusal:
    """The project is suspended; a cause names that, and clients go by it."""
    why = (
        f'project "{project}" is suspended (Billing) and cannot accept new updates while suspended'
    )
    details = _details(resource, name)
    details["causes"] = [{"reason": "ProjectSuspended", "message": why}]
    message = f'{_qualified(resource)} "{name}" is forbidden: {why}'
    return Refusal(403, "Forbidden", message, details)


def invalid(kind: str, name: str, detail: str) -> Refusal:
    """Refused by the schema."""
    message = f'{kind}.{GROUP} "{name}" is invalid: {detail}'
    return Refusal(422, "Invalid", message, {"name": name, "group": GROUP, "kind": kind})


def failed_test() -> Refusal:
    """A test of a JSON patch fails, or the patch does not apply."""
    message = "the server rejected our request due to an error in our request"
    return Refusal(422, "Invalid", message, {})


def conflict(kind: str, name: str, detail: str) -> Refusal:
    """A precondition does not hold."""
    message = f'Operation cannot be fulfilled on {kind}.{GROUP} "{name}": {detail}'
    return Refusal(409, "Conflict", message, {"name": name, "group": GROUP, "kind": kind})


def expired() -> Refusal:
    """The requested version is older than the history."""
    return Refusal(410, "Expired", "too old resource version")
