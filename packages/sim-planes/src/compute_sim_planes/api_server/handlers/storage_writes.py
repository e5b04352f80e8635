"""Create and update of stored objects: decode, rules, admission, commit.

Every write (POST, PUT, patches, apply) ends here, in the order of a real server: undeclared fields
are pruned and defaults set, system fields restored, field ownership recorded, then the object is
validated, reviewed and committed. A review may take time, so the stored object is compared again
before the commit: after a concurrent write the edit is computed again, or refused when the client
sent a resourceVersion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.admission.chain import AdmissionRequest, Operation
from compute_sim_planes.api_server.handlers.ratcheting import (
    has_duplicates,
    tolerate_duplicates,
    tolerate_unchanged,
)
from compute_sim_planes.api_server.http.request import ApiRequest
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.kinds.metadata_decoding import MetadataTypeError, shape_metadata
from compute_sim_planes.api_server.kinds.object_meta import meta_problems, meta_update_problems
from compute_sim_planes.api_server.patch.server_side_apply import record_update
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.schema.field_problems import FieldProblem, ProblemKind
from compute_sim_planes.api_server.schema.prune_and_default import prune
from compute_sim_planes.api_server.schema.rule_evaluation import NOT_CHECKED, prevents_rules
from compute_sim_planes.api_server.storage import system_fields
from compute_sim_planes.api_server.storage.kind_rules import KindRules, rules_of
from compute_sim_planes.api_server.storage.records import StoredObject, encode
from compute_sim_planes.json_copies import copy_json
from compute_sim_planes.json_types import (
    JsonObject,
    ensure_object,
    object_at,
    string_at,
    strings_at,
)

NAMESPACES: Final = GroupResource("", "namespaces")
# A real server gives up on a patch after five lost races.
_ATTEMPTS: Final = 5

# The desired object for the stored one, which is passed decoded and must not be changed; raises
# when the edit is impossible. Unchanged parts must be returned as the same value.
Edit = Callable[[StoredObject, JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write."""

    manager: str
    dry_run: bool = False
    subresource: str = ""
    # Server-side apply has already recorded field ownership.
    recorded: bool = False


def shape(call: ApiRequest, desired: JsonObject, known: JsonObject | None = None) -> JsonObject:
    """The object with undeclared fields removed and defaults set.

    `known` is an object in that form; fields that are the same value there are not processed again.
    """
    metadata, unknown = _shape_metadata(call, desired)
    desired = {**desired, "metadata": metadata}
    schema = call.kind.schema
    if schema is not None:
        same = {} if known is None else {k: v for k, v in desired.items() if v is known.get(k)}
        touched = {k: v for k, v in desired.items() if k not in same}
        touched, undeclared = prune(touched, schema.root)
        unknown += undeclared
        desired = {**schema.default(touched), **same}
    if unknown:
        _report_unknown(call, unknown)
    return desired


def _shape_metadata(call: ApiRequest, desired: JsonObject) -> tuple[JsonObject, list[str]]:
    try:
        return shape_metadata(desired.get("metadata"))
    except MetadataTypeError as error:
        raise api_errors.bad_request(
            f'{call.kind.kind} in version "{call.kind.version}" cannot be handled as a '
            f"{call.kind.kind}: {error}"
        ) from error


def _report_unknown(call: ApiRequest, unknown: list[str]) -> None:
    texts = [f'unknown field "{path}"' for path in unknown]
    match call.query.get("fieldValidation") or "Warn":
        case "Strict":
            raise api_errors.bad_request(
                f'{call.kind.kind} in version "{call.kind.version}" cannot be handled as a '
                f"{call.kind.kind}: strict decoding error: {', '.join(texts)}"
            )
        case "Warn":
            call.warnings.extend(texts)
        case _:
            pass


async def create(call: ApiRequest, desired: JsonObject, options: WriteOptions) -> bytes:
    """Commit a new object and return its bytes as a read shows them."""
    state, kind = call.state, call.kind
    metadata = ensure_object(desired, "metadata")
    system_fields.fill_generated_name(metadata, state.identities)
    name = string_at(metadata, "name")
    check_namespace(call, name)
    _check_definition(call, name)
    if string_at(metadata, "resourceVersion"):
        raise api_errors.unexplained("resourceVersion should not be set on objects to be created")
    metadata.pop("resourceVersion", None)
    now = state.clock.now()
    rules = rules_of(kind)
    system_fields.fill_new(kind, desired, now, state.identities)
    rules.fill(desired)
    desired = _amend(call, None, desired)
    if not options.recorded:
        desired = record_update(
            None, desired, manager=options.manager, now=now, subresource="", schema=kind.schema
        )
    rules.prepare_new(desired)
    # The status of the request is dropped. Reads show the schema's default instead, which is valid
    # and not stored until the next write.
    shown: JsonObject = {}
    if kind.default_status is not None:
        shown["status"] = desired["status"] = copy_json(kind.default_status)
    problems = [*_type_problems(call, desired), *meta_problems(kind, desired)]
    problems += _schema_problems(call, desired, shown)
    check(call, desired, [*problems, *_broken_rules(call, desired, problems)], rules)
    _warn_of_finalizers(call, None, desired)
    await _review(call, "CREATE", None, desired, options)
    if state.store.get(kind.group_resource, call.namespace, name) is not None:
        raise api_errors.already_exists(kind.group_resource, name)
    # The namespace may have been deleted during the review.
    check_namespace(call, name)
    encoded = check_size(call, desired)
    if options.dry_run:
        return encoded
    stored = state.store.add(kind, desired, call.user.name)
    stored.unsettled = bool(shown)
    return stored.raw


def check_namespace(call: ApiRequest, name: str) -> None:
    """Refuse new objects where the namespace is absent or terminating."""
    if not call.kind.namespaced:
        return
    existing = call.state.store.get(NAMESPACES, "", call.namespace)
    if existing is None:
        raise api_errors.not_found(NAMESPACES, call.namespace)
    if existing.terminating:
        raise api_errors.namespace_terminating(call.kind.group_resource, name, call.namespace)


def _check_definition(call: ApiRequest, name: str) -> None:
    """Refuse new objects of a kind while its CRD is being deleted."""
    resource = call.kind.group_resource
    if resource in call.state.catalog.closing:
        why = "create not allowed while custom resource definition is terminating"
        raise api_errors.forbidden(resource, name, why)


async def update(call: ApiRequest, edit: Edit, options: WriteOptions) -> bytes:
    """Commit a new version of an existing object and return its bytes as a read shows them."""
    state, kind = call.state, call.kind
    for _ in range(_ATTEMPTS):
        existing = state.store.get(kind.group_resource, call.namespace, call.name)
        if existing is None:
            raise api_errors.not_found(kind.group_resource, call.name)
        before = existing.decode_as(kind)
        desired = _prepare(call, before, edit(existing, before), options)
        await _review(call, "UPDATE", before, desired, options)
        if state.store.get(kind.group_resource, call.namespace, call.name) is existing:
            return _commit(call, existing, desired, options)
    raise api_errors.conflict(kind.group_resource, call.name)


def _prepare(
    call: ApiRequest, before: JsonObject, desired: JsonObject, options: WriteOptions
) -> JsonObject:
    kind, now, rules = call.kind, call.state.clock.now(), rules_of(call.kind)
    problems = meta_update_problems(kind, before, desired)
    if not kind.built_in:
        # A real server validates the metadata of such kinds twice and reports each problem twice.
        problems = [*problems, *problems]
    problems += _type_problems(call, desired)
    is_status = options.subresource == "status"
    if is_status:
        desired = {
            **before,
            "status": desired.get("status"),
            "metadata": object_at(desired, "metadata"),
        }
    else:
        rules.fill(desired)
        desired = _amend(call, before, desired)
    system_fields.preserve_system_fields(kind, before, desired, status=not is_status)
    rules.prepare_update(before, desired)
    # Once managedFields were emptied, ownership is not recorded again until a server-side apply.
    if not options.recorded and object_at(before, "metadata").get("managedFields"):
        desired = record_update(
            before,
            desired,
            manager=options.manager,
            now=now,
            subresource=options.subresource,
            schema=kind.schema,
        )
    if is_status:
        # Only after ownership was recorded: the sender owns the metadata it sent, although a status
        # write does not store it.
        desired = system_fields.take_status(before, desired)
    schema_problems = tolerate_unchanged(_schema_problems(call, desired, before), before, desired)
    if has_duplicates(schema_problems) and has_duplicates(_schema_problems(call, before)):
        schema_problems = tolerate_duplicates(schema_problems)
    problems += schema_problems
    broken = _broken_rules(call, desired, problems, before)
    check(call, desired, [*problems, *broken], rules, before)
    _warn_of_finalizers(call, before, desired)
    return desired


def _amend(call: ApiRequest, before: JsonObject | None, desired: JsonObject) -> JsonObject:
    amendment = call.state.amendments.get(call.kind.group_resource)
    return desired if amendment is None else amendment(before, desired)


def _schema_problems(
    call: ApiRequest, desired: JsonObject, known: JsonObject | None = None
) -> list[FieldProblem]:
    """Schema problems of the object; fields that are the same value in `known` are skipped.

    A problem in an unchanged field is tolerated on update anyway (`ratcheting`).
    """
    schema = call.kind.schema
    if schema is None:
        return []
    root, touched = schema.root, desired
    if known is not None and root.combinations.is_empty and not root.bounds.for_objects:
        touched = {k: v for k, v in desired.items() if v is not known.get(k)}
    problem_list = [
        problem
        for problem in schema.validate(touched)
        # Reported as missing only because `touched` does not contain it.
        if problem.kind is not ProblemKind.REQUIRED or problem.path not in desired
    ]
    return sorted(problem_list, key=lambda problem: problem.path)


def _broken_rules(
    call: ApiRequest,
    desired: JsonObject,
    problems: list[FieldProblem],
    before: JsonObject | None = None,
) -> list[FieldProblem]:
    """The CEL rules that refuse the object; those in unchanged values become warnings."""
    schema = call.kind.schema
    if schema is None or not schema.root.has_rules:
        return []
    if prevents_rules(problems):
        return [NOT_CHECKED]
    broken = schema.check_rules(desired, before)
    call.warnings.extend(str(each.problem) for each in broken if each.is_tolerated)
    return [each.problem for each in broken if not each.is_tolerated]


def _type_problems(call: ApiRequest, desired: JsonObject) -> list[FieldProblem]:
    kind = string_at(desired, "kind")
    if kind == call.kind.kind:
        return []
    return [field_problems.invalid("kind", kind, f"must be {call.kind.kind}")]


_KNOWN_FINALIZERS: Final = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


def _warn_of_finalizers(call: ApiRequest, before: JsonObject | None, desired: JsonObject) -> None:
    existing = strings_at(before, "metadata", "finalizers")
    for name in strings_at(desired, "metadata", "finalizers"):
        if "/" not in name and name not in _KNOWN_FINALIZERS and name not in existing:
            call.warnings.append(
                f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid '
                "accidental conflicts with other finalizer writers"
            )


def check(
    call: ApiRequest,
    desired: JsonObject,
    problems: list[FieldProblem],
    rules: KindRules,
    before: JsonObject | None = None,
) -> None:
    problems = [*problems, *rules.problems(before, desired)]
    if problems:
        kind, name = string_at(desired, "kind"), string_at(desired, "metadata", "name")
        raise api_errors.invalid_kind(call.kind.group, kind, name, problems)


async def _review(
    call: ApiRequest,
    operation: Operation,
    before: JsonObject | None,
    desired: JsonObject,
    options: WriteOptions,
) -> None:
    if not call.state.admission.reviewers:
        return
    request = AdmissionRequest(
        operation=operation,
        kind=call.kind,
        namespace=call.namespace,
        name=string_at(desired, "metadata", "name"),
        user=call.user,
        desired=desired,
        existing=before,
        subresource=options.subresource,
        options=_options_json(call, operation, options),
        dry_run=options.dry_run,
    )
    call.warnings.extend(await call.state.admission.review(request))


def _options_json(call: ApiRequest, operation: Operation, options: WriteOptions) -> JsonObject:
    """The options of the request; a field manager derived from the user agent is not one."""
    kind = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
    rendered: JsonObject = {"apiVersion": "meta.k8s.io/v1", "kind": kind}
    if manager := call.query.get("fieldManager"):
        rendered["fieldManager"] = manager
    if options.dry_run:
        rendered["dryRun"] = ["All"]
    return rendered


def _commit(
    call: ApiRequest, existing: StoredObject, desired: JsonObject, options: WriteOptions
) -> bytes:
    object_at(desired, "metadata")["resourceVersion"] = str(existing.revision)
    encoded = check_size(call, desired)
    if options.dry_run:
        return encoded
    if system_fields.can_be_removed(desired) and rules_of(call.kind).can_be_removed(desired):
        # The last finalizer is gone: the only event is the deletion, with the object as it was
        # stored.
        call.state.store.remove(existing, call.user.name)
        return encoded
    if encoded == existing.raw and not existing.unsettled:
        return encoded
    stored = call.state.store.replace(existing, call.kind, desired, call.user.name)
    return stored.read_as(call.kind)


def check_size(call: ApiRequest, desired: JsonObject) -> bytes:
    """The encoded object; raises when it is too large for storage."""
    encoded = encode(desired)
    limit = call.state.limits.object_bytes
    if len(encoded) > limit:
        raise api_errors.too_large(limit)
    return encoded
