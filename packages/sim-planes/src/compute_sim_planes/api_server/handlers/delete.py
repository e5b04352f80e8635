"""Handlers of delete and deletecollection, with preconditions, finalizers and propagation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.admission.chain import AdmissionRequest
from compute_sim_planes.api_server.handlers.read import list_metadata, read_page
from compute_sim_planes.api_server.http.presentation import present_object
from compute_sim_planes.api_server.http.request import ApiRequest, dry_run_of, is_dry_run
from compute_sim_planes.api_server.http.request_bodies import (
    JSON,
    media_type,
    parse_json,
    parse_yaml,
)
from compute_sim_planes.api_server.http.responses import json_response, object_response, render_list
from compute_sim_planes.api_server.http.selection import select
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.storage.deletion import Deletion, delete_stored
from compute_sim_planes.api_server.storage.records import StoredObject
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at

NAMESPACES: Final = GroupResource("", "namespaces")
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_POLICIES: Final = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete request."""

    document: JsonObject
    propagation: str | None
    uid: str
    version: str
    grace: int | None
    dry_run: bool


async def delete(call: ApiRequest) -> Response:
    options = _parse_options(call)
    existing = call.state.store.get(call.kind.group_resource, call.namespace, call.name)
    if existing is None:
        raise api_errors.not_found(call.kind.group_resource, call.name)
    deletion = await _delete(call, existing, options)
    if deletion.gone and not call.kind.returns_deleted:
        return json_response(_success(call, deletion.last), warnings=call.warnings)
    shown = present_object(call, deletion.last.read_as(call.kind))
    return object_response(shown, warnings=call.warnings)


async def delete_collection(call: ApiRequest) -> Response:
    """Delete every selected object in turn; the response lists them as they were."""
    options = _parse_options(call)
    page = await read_page(call, select(call))
    for stored in page.items:
        current = call.state.store.get(call.kind.group_resource, stored.namespace, stored.name)
        if current is not None:
            await _delete(call, current, options)
    items = [stored.read_in_list(call.kind) for stored in page.items]
    shown = render_list(call.kind, items, list_metadata(call, page))
    return object_response(shown, warnings=call.warnings)


async def _delete(call: ApiRequest, existing: StoredObject, options: DeleteOptions) -> Deletion:
    if call.kind.group_resource == NAMESPACES and existing.name in _IMMORTAL:
        raise api_errors.forbidden(NAMESPACES, existing.name, "this namespace may not be deleted")
    while True:
        _check_preconditions(call, existing, options)
        await _review(call, existing, options)
        current = call.state.store.get(call.kind.group_resource, existing.namespace, existing.name)
        if current is None:
            raise api_errors.not_found(call.kind.group_resource, existing.name)
        if current is existing:
            break
        existing = current
    if options.dry_run:
        return Deletion(existing, gone=not existing.finalizers)
    state = call.state
    return delete_stored(
        state.store,
        existing,
        options.propagation,
        now=state.clock.now(),
        actor=call.user.name,
        grace=options.grace,
    )


def _check_preconditions(call: ApiRequest, existing: StoredObject, options: DeleteOptions) -> None:
    # Here a real server puts the kind where it puts the plural everywhere else.
    subject = GroupResource(call.kind.group, call.kind.kind)
    if options.uid and options.uid != existing.uid:
        raise api_errors.conflict(
            subject,
            existing.name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({existing.uid}). The object might have been deleted and then recreated",
        )
    if options.version and options.version != str(existing.revision):
        raise api_errors.conflict(
            subject,
            existing.name,
            f"the ResourceVersion in the precondition ({options.version}) does not match the "
            f"ResourceVersion in record ({existing.revision}). The object might have been modified",
        )


async def _review(call: ApiRequest, existing: StoredObject, options: DeleteOptions) -> None:
    if not call.state.admission.reviewers:
        return
    request = AdmissionRequest(
        operation="DELETE",
        kind=call.kind,
        namespace=existing.namespace,
        name=existing.name,
        user=call.user,
        desired=None,
        existing=existing.decode_as(call.kind),
        options={"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", **options.document},
        dry_run=options.dry_run,
    )
    call.warnings.extend(await call.state.admission.review(request))


def _success(call: ApiRequest, last: StoredObject) -> JsonObject:
    details: JsonObject = {"name": last.name}
    if call.kind.group:
        details["group"] = call.kind.group
    details |= {"kind": call.kind.plural, "uid": last.uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def _parse_options(call: ApiRequest) -> DeleteOptions:
    document: JsonObject = {}
    if call.body.strip():
        parsed = (
            parse_json(call.body) if media_type(call.headers) == JSON else parse_yaml(call.body)
        )
        if not isinstance(parsed, dict):
            raise api_errors.bad_request("delete options must be an object")
        document = parsed
    preconditions = object_at(document, "preconditions")
    return DeleteOptions(
        document=document,
        propagation=_parse_propagation(call, document),
        uid=string_at(preconditions, "uid"),
        version=string_at(preconditions, "resourceVersion"),
        grace=_parse_grace(call, document),
        dry_run=is_dry_run(dry_run_of(document, call.query), "DeleteOptions"),
    )


def _parse_grace(call: ApiRequest, document: JsonObject) -> int | None:
    asked = document.get("gracePeriodSeconds") if document else call.query.get("gracePeriodSeconds")
    if isinstance(asked, str):
        return int(asked) if asked.isdecimal() else None
    return asked if isinstance(asked, int) and not isinstance(asked, bool) else None


def _parse_propagation(call: ApiRequest, document: JsonObject) -> str | None:
    # With a body, its options replace those of the query.
    source: Mapping[str, JsonValue] = document or dict(call.query)
    policy, orphan = source.get("propagationPolicy"), source.get("orphanDependents")
    if orphan is not None and policy:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        problem = field_problems.invalid("propagationPolicy", policy, detail)
        raise api_errors.invalid_options("DeleteOptions", [problem])
    if orphan is not None:
        return "Orphan" if orphan in {True, "true"} else "Background"
    if policy and policy not in _POLICIES:
        problem = field_problems.not_supported("propagationPolicy", policy, [*_POLICIES, "nil"])
        raise api_errors.invalid_options("DeleteOptions", [problem])
    return str(policy) if policy else None
