"""Defaults, validation and deletion rules of some built-in kinds.

Only rules that clients can observe; kinds from CRDs have none. The functions change the object they
are given.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.kinds import crd_documents
from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.schema.field_problems import FieldProblem
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    ensure_object,
    integer_at,
    object_at,
    objects_at,
    string_at,
    string_map_at,
    strings_at,
)


def _no_change(desired: JsonObject) -> None:
    del desired


def _no_update(before: JsonObject, desired: JsonObject) -> None:
    del before, desired


def _no_delete(desired: JsonObject, now: datetime) -> None:
    del desired, now


def _no_problems(before: JsonObject | None, desired: JsonObject) -> list[FieldProblem]:
    del before, desired
    return []


def _no_grace(desired: JsonObject, asked: int | None) -> int:
    del desired, asked
    return 0


def _always(desired: JsonObject) -> bool:
    del desired
    return True


@dataclass(frozen=True, slots=True)
class KindRules:
    """The hooks of a kind."""

    # Defaults of a request, which its sender then owns.
    fill: Callable[[JsonObject], None] = _no_change
    # Fields that the server sets on a new object, and keeps on an update.
    prepare_new: Callable[[JsonObject], None] = _no_change
    prepare_update: Callable[[JsonObject, JsonObject], None] = _no_update
    # For a delete that cannot complete at once.
    prepare_delete: Callable[[JsonObject, datetime], None] = _no_delete
    # Before (None for a new object) and after.
    problems: Callable[[JsonObject | None, JsonObject], list[FieldProblem]] = _no_problems
    # Seconds between a delete and the removal, of which the request may ask for fewer.
    grace: Callable[[JsonObject, int | None], int] = _no_grace
    # Whether a terminating object without finalizers may be removed.
    can_be_removed: Callable[[JsonObject], bool] = _always


def _label_namespace(desired: JsonObject) -> None:
    metadata = ensure_object(desired, "metadata")
    ensure_object(metadata, "labels")["kubernetes.io/metadata.name"] = string_at(metadata, "name")


def _begin_namespace(desired: JsonObject) -> None:
    desired["spec"] = {"finalizers": ["kubernetes"]}
    desired["status"] = {"phase": "Active"}


def _preserve_namespace(before: JsonObject, desired: JsonObject) -> None:
    """The finalizers of a namespace can only be changed through its subresource."""
    desired["spec"] = before.get("spec", {})


def _terminate_namespace(desired: JsonObject, now: datetime) -> None:
    del now
    ensure_object(desired, "status")["phase"] = "Terminating"


def _namespace_can_be_removed(desired: JsonObject) -> bool:
    return not array_at(desired, "spec", "finalizers")


DEFAULT_GRACE: Final = 30


def _pod_grace(desired: JsonObject, asked: int | None) -> int:
    """A Pod on a node stays until its kubelet has stopped it; one that never ran goes at once."""
    is_over = string_at(desired, "status", "phase") in {"Succeeded", "Failed"}
    if is_over or not string_at(desired, "spec", "nodeName"):
        return 0
    own = integer_at(desired, "spec", "terminationGracePeriodSeconds")
    period = (DEFAULT_GRACE if own is None else own) if asked is None else asked
    left = integer_at(desired, "metadata", "deletionGracePeriodSeconds")
    return period if left is None else min(period, left)


def _pod_can_be_removed(desired: JsonObject) -> bool:
    return not integer_at(desired, "metadata", "deletionGracePeriodSeconds")


def _begin_pod(desired: JsonObject) -> None:
    ensure_object(desired, "status")["phase"] = "Pending"


def _fill_secret(desired: JsonObject) -> None:
    """`stringData` is write-only: it is encoded into `data`."""
    plain = string_map_at(desired, "stringData")
    desired.pop("stringData", None)
    if plain:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}
        ensure_object(desired, "data").update(encoded)
    desired.setdefault("type", "Opaque")


def _secret_problems(before: JsonObject | None, desired: JsonObject) -> list[FieldProblem]:
    if before is not None and before.get("immutable") is True:
        return _immutable_data(before, desired, ("data", "immutable"))
    if before is not None and before.get("type") != desired.get("type"):
        return [field_problems.invalid("type", desired.get("type"), "field is immutable")]
    return _key_problems(desired)


def _check_texts(kind: str, name: str) -> Callable[[JsonObject], None]:
    """Refuse a map with values other than strings, as Go's decoder does."""

    def check(desired: JsonObject) -> None:
        for value in object_at(desired, name).values():
            if not isinstance(value, str):
                raise api_errors.bad_request(
                    f'{kind} in version "v1" cannot be handled as a {kind}: json: cannot unmarshal '
                    f"{_go_type(value)} into Go struct field {kind}.{name} of type string"
                )

    return check


def _go_type(value: JsonValue) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "null"


def _key_problems(desired: JsonObject) -> list[FieldProblem]:
    return [
        field_problems.invalid(f"data[{key}]", key, _KEY_RULE)
        for key in object_at(desired, "data")
        if _KEY.fullmatch(key) is None
    ]


def _config_map_problems(before: JsonObject | None, desired: JsonObject) -> list[FieldProblem]:
    if before is not None and before.get("immutable") is True:
        return _immutable_data(before, desired, ("data", "binaryData", "immutable"))
    return _key_problems(desired)


def _immutable_data(
    before: JsonObject, desired: JsonObject, names: tuple[str, ...]
) -> list[FieldProblem]:
    return [
        field_problems.forbidden(name, "field is immutable when `immutable` is set")
        for name in names
        if before.get(name) != desired.get(name)
    ]


def _binding_problems(before: JsonObject | None, desired: JsonObject) -> list[FieldProblem]:
    reference = object_at(desired, "roleRef")
    if not string_at(reference, "name"):
        return [field_problems.required("roleRef.name")]
    if before is not None and before.get("roleRef") != reference:
        return [field_problems.invalid("roleRef", reference, "cannot change roleRef")]
    return []


def _fill_webhooks(desired: JsonObject) -> None:
    for webhook in objects_at(desired, "webhooks"):
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        webhook.setdefault("timeoutSeconds", 10)
        for rule in objects_at(webhook, "rules"):
            rule.setdefault("scope", "*")
        service = object_at(webhook, "clientConfig", "service")
        if service:
            service.setdefault("port", 443)


def _webhook_problems(before: JsonObject | None, desired: JsonObject) -> list[FieldProblem]:
    del before
    problems: list[FieldProblem] = []
    for at, webhook in enumerate(objects_at(desired, "webhooks")):
        path = f"webhooks[{at}]"
        if not strings_at(webhook, "admissionReviewVersions"):
            detail = "must specify one of v1, v1beta1"
            problems.append(field_problems.required(f"{path}.admissionReviewVersions", detail))
        if string_at(webhook, "sideEffects") not in {"None", "NoneOnDryRun"}:
            detail = "must specify one of None, NoneOnDryRun"
            problems.append(field_problems.required(f"{path}.sideEffects", detail))
        if array_at(webhook, "matchConditions"):
            # Refused, because a condition that is not evaluated would match the wrong requests.
            detail = "this server evaluates no CEL of webhooks"
            problems.append(field_problems.forbidden(f"{path}.matchConditions", detail))
    return problems


_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_RBAC: Final = "rbac.authorization.k8s.io"
_NONE: Final = KindRules()
_RULES: Final[dict[GroupResource, KindRules]] = {
    GroupResource("", "namespaces"): KindRules(
        fill=_label_namespace,
        prepare_new=_begin_namespace,
        prepare_update=_preserve_namespace,
        prepare_delete=_terminate_namespace,
        can_be_removed=_namespace_can_be_removed,
    ),
    GroupResource("", "pods"): KindRules(
        prepare_new=_begin_pod, grace=_pod_grace, can_be_removed=_pod_can_be_removed
    ),
    GroupResource("", "secrets"): KindRules(fill=_fill_secret, problems=_secret_problems),
    GroupResource("", "configmaps"): KindRules(
        fill=_check_texts("ConfigMap", "data"), problems=_config_map_problems
    ),
    GroupResource(_RBAC, "rolebindings"): KindRules(problems=_binding_problems),
    GroupResource(_RBAC, "clusterrolebindings"): KindRules(problems=_binding_problems),
    GroupResource("admissionregistration.k8s.io", "validatingwebhookconfigurations"): KindRules(
        fill=_fill_webhooks, problems=_webhook_problems
    ),
    crd_documents.CRDS: KindRules(
        fill=crd_documents.fill,
        prepare_new=crd_documents.begin,
        prepare_delete=crd_documents.prepare_delete,
        problems=crd_documents.problems,
    ),
}


def rules_of(kind: Kind) -> KindRules:
    return _RULES.get(kind.group_resource, _NONE) if kind.built_in else _NONE
