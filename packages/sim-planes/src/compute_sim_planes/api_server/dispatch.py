"""The request pipeline: authentication, impersonation, authorization, routing, handler.

The order is that of a real server. Every `StatusError` raised below becomes a `Status` response
here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.authz.authorizer import Attributes, describe_refusal
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.authz.impersonation import impersonate
from compute_sim_planes.api_server.handlers import (
    delete,
    discovery,
    patch,
    read,
    reviews,
    scale,
    watch,
    write,
)
from compute_sim_planes.api_server.handlers.finalize import finalize_namespace
from compute_sim_planes.api_server.http.request import ApiRequest, is_true, parse_query
from compute_sim_planes.api_server.http.request_info import ResourcePath, derive_verb, parse_path
from compute_sim_planes.api_server.http.responses import error_response, text_response
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind
from compute_sim_planes.api_server.state import PlaneState

Handler = Callable[[ApiRequest], Awaitable[Response]]

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
# The verbs of the status subresource.
_STATUS_VERBS: Final = frozenset({"get", "patch", "update"})


async def dispatch(
    state: PlaneState,
    user: User | None,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
) -> Response:
    """The response to one request; with `user` None the request is authenticated by its token."""
    try:
        lowered = _lower(headers)
        requester = state.tokens.authenticate(lowered) if user is None else user
        if requester is None:
            raise api_errors.unauthorized()
        if "impersonate-user" in lowered:
            requester = impersonate(state.authorizer, requester, lowered)
        path, _, query = target.partition("?")
        return await _route(
            state, requester, method, path, parse_query(query), lowered, body or b""
        )
    except api_errors.StatusError as refused:
        return error_response(refused)
    except RecursionError:
        return error_response(api_errors.bad_request("exceeded max depth"))


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by lower-case name; the values of a repeated one are joined, as HTTP allows."""
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
) -> Response:
    parsed = parse_path(path)
    if parsed is None:
        check_path_rights(state, user, method, path)
        return discovery.serve_path(state, path, headers) or text_response(
            "404 page not found\n", 404
        )
    verb = derive_verb(method, parsed, watching=is_true(query.get("watch")))
    check_rights(state, user, verb, parsed)
    kind = state.catalog.find(parsed.group, parsed.version, parsed.resource)
    if kind is None:
        return _unknown(state, parsed)
    if len(body) > state.limits.body_bytes:
        raise api_errors.too_large(state.limits.body_bytes)
    if not kind.built_in and _is_misplaced(kind, parsed, verb):
        return text_response("404 page not found\n", 404)
    call = ApiRequest(state, user, kind, parsed, query, headers, body)
    return await _choose(call, verb)(call)


def _is_misplaced(kind: Kind, path: ResourcePath, verb: str) -> bool:
    """Whether a path lacks a namespace that the kind needs, or has one that it must not have."""
    if not kind.namespaced:
        return bool(path.namespace)
    return not path.namespace and verb not in {"list", "watch"}


def _choose(call: ApiRequest, verb: str) -> Handler:
    """The handler of a verb for this kind."""
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
    """Refuse a verb that does not fit the path of a built-in kind, with a 405 without details."""
    needs_name = verb in {"get", "update", "patch", "delete"}
    is_wrong_depth = needs_name != bool(path.name) and verb != "watch"
    # Without a namespace, objects of a namespaced kind can only be listed or watched.
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
    if path.subresource == "scale" and kind.scale is not None:
        if verb not in scale.VERBS:
            raise api_errors.method_not_supported(kind.group_resource, verb)
        return lambda call: scale.scale(call, verb)
    if path.subresource == "finalize" and "finalize" in kind.subresources and verb == "update":
        return finalize_namespace
    if kind.built_in:
        raise api_errors.no_such_resource()
    raise api_errors.not_found(kind.group_resource, path.name)


def _unknown(state: PlaneState, path: ResourcePath) -> Response:
    """Of a built-in group a 404 Status, of any other group the plain text of an unknown URL."""
    is_group = any(
        kind.built_in and kind.group == path.group and kind.version == path.version
        for kind in state.catalog
    )
    if is_group:
        raise api_errors.no_such_resource()
    return text_response("404 page not found\n", 404)


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
