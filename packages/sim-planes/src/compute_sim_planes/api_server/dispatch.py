"""From a request to its answer: who asks, may he, what is it about, who answers.

The order is a real server's: identity, rights, route, then the handler. Every refusal below becomes
a `Status` here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.answers import answer_error, answer_text
from compute_sim_planes.api_server.authorization import Attributes, describe_refusal
from compute_sim_planes.api_server.call import Call, is_true, parse_query
from compute_sim_planes.api_server.handlers import (
    delete,
    discovery,
    patch,
    read,
    reviews,
    watch,
    write,
)
from compute_sim_planes.api_server.handlers.finalize import finalize_namespace
from compute_sim_planes.api_server.identity import User
from compute_sim_planes.api_server.impersonation import impersonate
from compute_sim_planes.api_server.kinds import GroupResource, Kind
from compute_sim_planes.api_server.request_info import ResourcePath, derive_verb, parse_path
from compute_sim_planes.api_server.state import PlaneState
from compute_sim_planes.api_server.transport import Answer

Handler = Callable[[Call], Awaitable[Answer]]

_HANDLERS: Final[dict[str, Handler]] = {
    "create": write.create,
    "delete": delete.delete,
    "deletecollection": delete.delete_collection,
    "get": read.get,
    "list": read.list_objects,
    "patch": patch.patch,
    "update": write.update,
    "watch": watch.watch,
}
# Of a status one can only do these.
_STATUS_VERBS: Final = frozenset({"get", "patch", "update"})
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


async def dispatch(
    state: PlaneState,
    user: User | None,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
) -> Answer:
    """The answer to one request; `user` is None when the request must prove who it is."""
    try:
        lowered = _lower(headers)
        who = state.tokens.authenticate(lowered) if user is None else user
        if who is None:
            raise api_errors.unauthorized()
        if "impersonate-user" in lowered:
            who = impersonate(state.authorizer, who, lowered)
        path, _, query = target.partition("?")
        return await _route(state, who, method, path, parse_query(query), lowered, body or b"")
    except api_errors.ApiError as refused:
        return answer_error(refused)
    except RecursionError:
        return answer_error(api_errors.bad_request("exceeded max depth"))


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their name in lower case; the values of a repeated one joined as HTTP allows."""
    lowered: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        lowered[key] = f"{lowered[key]},{value}" if key in lowered else value
    return lowered


async def _route(  # noqa: PLR0913, PLR0917 (the parts of one request, handed on once)
    state: PlaneState,
    user: User,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
) -> Answer:
    found = parse_path(path)
    if found is None:
        check_path_rights(state, user, method, path)
        return discovery.answer_path(state, path, headers) or answer_text(
            "404 page not found\n", 404
        )
    verb = derive_verb(method, found, watching=is_true(query.get("watch")))
    check_rights(state, user, verb, found)
    kind = state.catalog.find(found.group, found.version, found.resource)
    if kind is None:
        return _unknown(state, found)
    if len(body) > state.limits.body_bytes:
        raise api_errors.too_large(state.limits.body_bytes)
    if not kind.built_in and _is_misplaced(kind, found, verb):
        return answer_text("404 page not found\n", 404)
    call = Call(state, user, kind, found, query, headers, body)
    return await _choose(call, verb)(call)


def _is_misplaced(kind: Kind, path: ResourcePath, verb: str) -> bool:
    """Whether a path leaves out a namespace it needs, or names one where there is none."""
    if not kind.namespaced:
        return bool(path.namespace)
    return not path.namespace and verb not in {"list", "watch"}


def _choose(call: Call, verb: str) -> Handler:
    """Who answers a verb of this kind."""
    kind, path = call.kind, call.path
    if kind.verbs == reviews.VERBS:
        if verb != "create" or path.name:
            raise api_errors.method_not_allowed()
        return reviews.review
    if path.subresource:
        return _choose_subresource(kind, path, verb)
    if kind.built_in:
        _check_method(kind, path, verb)
    elif verb not in _HANDLERS:
        raise api_errors.method_not_supported(kind.group_resource, verb)
    elif verb in {"update", "patch"} and not path.name:
        raise api_errors.bad_request("name must be provided")
    return _HANDLERS[verb]


def _check_method(kind: Kind, path: ResourcePath, verb: str) -> None:
    """Routes of built-in kinds are told apart by method and depth; a wrong one is refused bare."""
    needs_name = verb in {"get", "update", "patch", "delete"}
    is_wrong_depth = needs_name != bool(path.name) and verb != "watch"
    # Without a namespace a path of a namespaced kind can only be listed.
    is_outside = kind.namespaced and not path.namespace and verb not in {"list", "watch"}
    if verb not in kind.verbs or is_wrong_depth or is_outside:
        raise api_errors.method_not_allowed()


def _choose_subresource(kind: Kind, path: ResourcePath, verb: str) -> Handler:
    if path.subresource == "status" and kind.has_status:
        if verb in _STATUS_VERBS:
            return _HANDLERS[verb]
        if kind.built_in:
            raise api_errors.method_not_allowed()
        raise api_errors.method_not_supported(kind.group_resource, verb)
    if path.subresource == "finalize" and "finalize" in kind.subresources and verb == "update":
        return finalize_namespace
    if kind.built_in:
        raise api_errors.no_such_resource()
    raise api_errors.not_found(kind.group_resource, path.name)


def _unknown(state: PlaneState, path: ResourcePath) -> Answer:
    """A path to nothing: of a built-in group a Status, of any other the plain text of an unknown
    URL.
    """
    is_group = any(
        kind.built_in and kind.group == path.group and kind.version == path.version
        for kind in state.catalog
    )
    if is_group:
        raise api_errors.no_such_resource()
    return answer_text("404 page not found\n", 404)


def check_rights(state: PlaneState, user: User, verb: str, path: ResourcePath) -> None:
    attributes = Attributes(
        verb=verb,
        group=path.group,
        version=path.version,
        resource=path.resource,
        subresource=path.subresource,
        namespace=path.namespace,
        name=path.name,
    )
    verdict = state.authorizer.authorize(user, attributes)
    if not verdict.allowed:
        why = describe_refusal(user, attributes, verdict.reason)
        raise api_errors.forbidden(GroupResource(path.group, path.resource), path.name, why)


def check_path_rights(state: PlaneState, user: User, method: str, path: str) -> None:
    attributes = Attributes(verb=method.lower(), path=path)
    verdict = state.authorizer.authorize(user, attributes)
    if not verdict.allowed:
        raise api_errors.forbidden_path(describe_refusal(user, attributes, verdict.reason))
