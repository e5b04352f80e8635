"""The one way into storage for a client's create or update: shape, rules, review, commit.

Every form of a write (POST, PUT, three kinds of patch, apply) ends here, in the order a real server
has: what came in is pruned and defaulted, system fields are put right, ownership is recorded, then
it is validated, reviewed and committed. A review may take time, so what was found is compared again
before the commit; a change that lost the race is worked out anew, or is refused when the client
named the version it meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server import api_errors, field_problems, system_fields
from compute_sim_planes.api_server.admission import AdmissionRequest, Operation
from compute_sim_planes.api_server.call import Call
from compute_sim_planes.api_server.field_problems import FieldProblem, ProblemKind
from compute_sim_planes.api_server.kind_rules import KindRules, rules_of
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.metadata_shape import MetadataTypeError, shape_metadata
from compute_sim_planes.api_server.object_meta import meta_problems, meta_update_problems
from compute_sim_planes.api_server.ratcheting import tolerate_unchanged
from compute_sim_planes.api_server.schema_shaping import prune
from compute_sim_planes.api_server.server_side_apply import record_update
from compute_sim_planes.api_server.storage.records import Stored, encode
from compute_sim_planes.json_copies import copy_json
from compute_sim_planes.json_types import (
    JsonObject,
    ensure_object,
    object_at,
    string_at,
    strings_at,
)

NAMESPACES: Final = GroupResource("", "namespaces")
# A real server gives up on a patch that keeps losing against other writers after five attempts.
_ATTEMPTS: Final = 5

# The object wanted instead of the one found, which is handed over decoded and is not to be changed;
# raises when that cannot be had. What an edit leaves as it is, it hands on as the very same value.
Edit = Callable[[Stored, JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is to be carried out."""

    manager: str
    dry_run: bool = False
    subresource: str = ""
    # Server-side apply has recorded who owns what by itself.
    recorded: bool = False


def shape(call: Call, wanted: JsonObject, known: JsonObject | None = None) -> JsonObject:
    """What is left of a request once undeclared fields are gone and defaults are in.

    `known` is an object in that shape: of a patch that touches one field, most is the same value as
    there.
    """
    metadata, unknown = _shape_metadata(call, wanted)
    wanted = {**wanted, "metadata": metadata}
    schema = call.kind.schema
    if schema is not None:
        same = {} if known is None else {k: v for k, v in wanted.items() if v is known.get(k)}
        touched = {k: v for k, v in wanted.items() if k not in same}
        touched, undeclared = prune(touched, schema.root)
        unknown += undeclared
        wanted = {**schema.default(touched), **same}
    if unknown:
        _tell_unknown(call, unknown)
    return wanted


def _shape_metadata(call: Call, wanted: JsonObject) -> tuple[JsonObject, list[str]]:
    try:
        return shape_metadata(wanted.get("metadata"))
    except MetadataTypeError as error:
        raise api_errors.bad_request(
            f'{call.kind.kind} in version "{call.kind.version}" cannot be handled as a '
            f"{call.kind.kind}: {error}"
        ) from error


def _tell_unknown(call: Call, unknown: list[str]) -> None:
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


async def create(call: Call, wanted: JsonObject, options: WriteOptions) -> bytes:
    """Commit a new object; the answer is how it reads."""
    state, kind = call.state, call.kind
    metadata = ensure_object(wanted, "metadata")
    system_fields.fill_generated_name(metadata, state.identities)
    name = string_at(metadata, "name")
    check_namespace(call, name)
    _check_definition(call, name)
    if string_at(metadata, "resourceVersion"):
        raise api_errors.unexplained("resourceVersion should not be set on objects to be created")
    metadata.pop("resourceVersion", None)
    now = state.clock.now()
    rules = rules_of(kind)
    system_fields.fill_new(kind, wanted, now, state.identities)
    rules.fill(wanted)
    wanted = _amend(call, None, wanted)
    if not options.recorded:
        wanted = record_update(
            None, wanted, manager=options.manager, now=now, subresource="", schema=kind.schema
        )
    rules.prepare_new(wanted)
    # The status of the request is gone; what reads show instead is the schema's, which is valid and
    # not stored until the next write.
    shown: JsonObject = {}
    if kind.default_status is not None:
        shown["status"] = wanted["status"] = copy_json(kind.default_status)
    problems = [*_type_problems(call, wanted), *meta_problems(kind, wanted)]
    check(call, wanted, [*problems, *_schema_problems(call, wanted, shown)], rules)
    _warn_of_finalizers(call, None, wanted)
    await _review(call, "CREATE", None, wanted, options)
    if state.store.get(kind.group_resource, call.namespace, name) is not None:
        raise api_errors.already_exists(kind.group_resource, name)
    # The namespace may have gone while somebody was asked.
    check_namespace(call, name)
    encoded = check_size(call, wanted)
    if options.dry_run:
        return encoded
    stored = state.store.add(kind, wanted, call.user.name)
    stored.unsettled = bool(shown)
    return stored.raw


def check_namespace(call: Call, name: str) -> None:
    """Refuse new content where there is no namespace, or one that is going."""
    if not call.kind.namespaced:
        return
    found = call.state.store.get(NAMESPACES, "", call.namespace)
    if found is None:
        raise api_errors.not_found(NAMESPACES, call.namespace)
    if found.terminating:
        raise api_errors.namespace_terminating(call.kind.group_resource, name, call.namespace)


def _check_definition(call: Call, name: str) -> None:
    """Refuse new objects of a kind that is being removed."""
    resource = call.kind.group_resource
    if resource in call.state.catalog.closing:
        why = "create not allowed while custom resource definition is terminating"
        raise api_errors.forbidden(resource, name, why)


async def update(call: Call, edit: Edit, options: WriteOptions) -> bytes:
    """Commit a further version of an object that exists; the answer is how it reads."""
    state, kind = call.state, call.kind
    for _ in range(_ATTEMPTS):
        found = state.store.get(kind.group_resource, call.namespace, call.name)
        if found is None:
            raise api_errors.not_found(kind.group_resource, call.name)
        before = found.decode_as(kind)
        wanted = _prepare(call, before, edit(found, before), options)
        await _review(call, "UPDATE", before, wanted, options)
        if state.store.get(kind.group_resource, call.namespace, call.name) is found:
            return _commit(call, found, wanted, options)
    raise api_errors.conflict(kind.group_resource, call.name)


def _prepare(
    call: Call, before: JsonObject, wanted: JsonObject, options: WriteOptions
) -> JsonObject:
    kind, now, rules = call.kind, call.state.clock.now(), rules_of(call.kind)
    problems = meta_update_problems(kind, before, wanted)
    if not kind.built_in:
        # A real server checks the metadata of such kinds twice, and tells twice.
        problems = [*problems, *problems]
    problems += _type_problems(call, wanted)
    is_status = options.subresource == "status"
    if is_status:
        wanted = {
            **before,
            "status": wanted.get("status"),
            "metadata": object_at(wanted, "metadata"),
        }
    else:
        rules.fill(wanted)
        wanted = _amend(call, before, wanted)
    system_fields.keep_system_fields(kind, before, wanted, status=not is_status)
    rules.prepare_update(before, wanted)
    # An object whose owners were once forgotten is not followed again until somebody applies to it.
    if not options.recorded and object_at(before, "metadata").get("managedFields"):
        wanted = record_update(
            before,
            wanted,
            manager=options.manager,
            now=now,
            subresource=options.subresource,
            schema=kind.schema,
        )
    if is_status:
        # Only now: who changes metadata here owns what he sent, though it is not taken over.
        wanted = system_fields.take_status(before, wanted)
    schema_problems = tolerate_unchanged(_schema_problems(call, wanted, before), before, wanted)
    check(call, wanted, [*problems, *schema_problems], rules, before)
    _warn_of_finalizers(call, before, wanted)
    return wanted


def _amend(call: Call, before: JsonObject | None, wanted: JsonObject) -> JsonObject:
    amendment = call.state.amendments.get(call.kind.group_resource)
    return wanted if amendment is None else amendment(before, wanted)


def _schema_problems(
    call: Call, wanted: JsonObject, known: JsonObject | None = None
) -> list[FieldProblem]:
    """What is wrong with the object; what is the same value as in `known` is not looked at again.

    An update that leaves a bad field alone is tolerated anyway (`ratcheting`).
    """
    schema = call.kind.schema
    if schema is None:
        return []
    root, touched = schema.root, wanted
    if known is not None and root.combinations.is_empty and not root.bounds.for_objects:
        touched = {k: v for k, v in wanted.items() if v is not known.get(k)}
    found = [
        problem
        for problem in schema.validate(touched)
        # Missing only because it was left out here.
        if problem.kind is not ProblemKind.REQUIRED or problem.path not in wanted
    ]
    return sorted(found, key=lambda problem: problem.path)


def _type_problems(call: Call, wanted: JsonObject) -> list[FieldProblem]:
    kind = string_at(wanted, "kind")
    if kind == call.kind.kind:
        return []
    return [field_problems.invalid("kind", kind, f"must be {call.kind.kind}")]


_KNOWN_FINALIZERS: Final = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


def _warn_of_finalizers(call: Call, before: JsonObject | None, wanted: JsonObject) -> None:
    found = strings_at(before, "metadata", "finalizers")
    for name in strings_at(wanted, "metadata", "finalizers"):
        if "/" not in name and name not in _KNOWN_FINALIZERS and name not in found:
            call.warnings.append(
                f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid '
                "accidental conflicts with other finalizer writers"
            )


def check(
    call: Call,
    wanted: JsonObject,
    problems: list[FieldProblem],
    rules: KindRules,
    before: JsonObject | None = None,
) -> None:
    problems = [*problems, *rules.problems(before, wanted)]
    if problems:
        kind, name = string_at(wanted, "kind"), string_at(wanted, "metadata", "name")
        raise api_errors.invalid_kind(call.kind.group, kind, name, problems)


async def _review(
    call: Call,
    operation: Operation,
    before: JsonObject | None,
    wanted: JsonObject,
    options: WriteOptions,
) -> None:
    if not call.state.admission.reviewers:
        return
    request = AdmissionRequest(
        operation=operation,
        kind=call.kind,
        namespace=call.namespace,
        name=string_at(wanted, "metadata", "name"),
        user=call.user,
        wanted=wanted,
        found=before,
        subresource=options.subresource,
        options=_options_json(call, operation, options),
        dry_run=options.dry_run,
    )
    call.warnings.extend(await call.state.admission.review(request))


def _options_json(call: Call, operation: Operation, options: WriteOptions) -> JsonObject:
    """As the request has them: a manager read from the user agent is none of its options."""
    kind = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
    found: JsonObject = {"apiVersion": "meta.k8s.io/v1", "kind": kind}
    if manager := call.query.get("fieldManager"):
        found["fieldManager"] = manager
    if options.dry_run:
        found["dryRun"] = ["All"]
    return found


def _commit(call: Call, found: Stored, wanted: JsonObject, options: WriteOptions) -> bytes:
    object_at(wanted, "metadata")["resourceVersion"] = str(found.revision)
    encoded = check_size(call, wanted)
    if options.dry_run:
        return encoded
    if system_fields.may_leave(wanted) and rules_of(call.kind).may_leave(wanted):
        # The last finalizer is gone: one event tells it, the deletion, with the object as it was
        # stored.
        call.state.store.remove(found, call.user.name)
        return encoded
    if encoded == found.raw and not found.unsettled:
        return encoded
    stored = call.state.store.replace(found, call.kind, wanted, call.user.name)
    return stored.read_as(call.kind)


def check_size(call: Call, wanted: JsonObject) -> bytes:
    """The bytes of an object that is small enough for storage."""
    encoded = encode(wanted)
    limit = call.state.limits.object_bytes
    if len(encoded) > limit:
        raise api_errors.too_large(limit)
    return encoded
