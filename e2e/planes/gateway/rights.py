"""The question whether somebody may do something, as the root's API server is asked it. Pure."""

from __future__ import annotations

from typing import Final

from compute_sim_planes.api_server.identity import User
from compute_sim_planes.api_server.request_info import ResourcePath, derive_verb
from compute_sim_planes.json_types import JsonObject, JsonValue

REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def derive_review(user: User, method: str, asked: ResourcePath, *, watching: bool) -> JsonObject:
    """Rights are read at the root, whatever project is asked (neighbours.md 2.1)."""
    wanted = {
        "verb": derive_verb(method, asked, watching=watching),
        "group": asked.group,
        "version": asked.version,
        "resource": asked.resource,
        "subresource": asked.subresource,
        "namespace": asked.namespace,
        "name": asked.name,
    }
    attributes: JsonObject = {name: value for name, value in wanted.items() if value}
    groups: list[JsonValue] = list(user.groups)
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user.name, "groups": groups, "resourceAttributes": attributes},
    }
