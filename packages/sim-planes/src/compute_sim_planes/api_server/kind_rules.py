"""What the server does for some built-in kinds beyond storing them.

Few kinds have rules that a client can see; the others have none, and kinds from CRDs never.
Functions over one object that is written to; times come in.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_sim_planes.api_server import api_errors, crd_documents, field_problems
from compute_sim_planes.api_server.field_problems import FieldProblem
from compute_sim_planes.api_server.kinds import GroupResource, Kind
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    ensure_object,
    object_at,
    objects_at,
    string_at,
    string_map_at,
    strings_at,
)


def _keep(wanted: JsonObject) -> None:
    del wanted


def _keep_update(before: JsonObject, wanted: JsonObject) -> None:
    del before, wanted


def _keep_delete(wanted: JsonObject, now: datetime) -> None:
    del wanted, now


def _no_problems(before: JsonObject | None, wanted: JsonObject) -> list[FieldProblem]:
    del before, wanted
    return []


def _always(wanted: JsonObject) -> bool:
    del wanted
    return True


@dataclass(frozen=True, slots=True)
class KindRules:
    """The moments at which a kind may have a say."""

    # Defaults of a request, which its sender then owns.
    fill: Callable[[JsonObject], None] = _keep
    # What the server adds to a new object by itself, and what it keeps of an old one.
    prepare_new: Callable[[JsonObject], None] = _keep
    prepare_update: Callable[[JsonObject, JsonObject], None] = _keep_update
    # A delete that cannot be finished at once.
    prepare_delete: Callable[[JsonObject, datetime], None] = _keep_delete
    # Before (None for a new object) and after.
    problems: Callable[[JsonObject | None, JsonObject], list[FieldProblem]] = _no_problems
    # Whether a terminating object without finalizers may go.
    may_leave: Callable[[JsonObject], bool] = _always


def _label_namespace(wanted: JsonObject) -> None:
    metadata = ensure_object(wanted, "metadata")
    ensure_object(metadata, "labels")["kubernetes.io/metadata.name"] = string_at(metadata, "name")


def _begin_namespace(wanted: JsonObject) -> None:
    wanted["spec"] = {"finalizers": ["kubernetes"]}
    wanted["status"] = {"phase": "Active"}


def _keep_namespace(before: JsonObject, wanted: JsonObject) -> None:
    """Its finalizers are changed through a subresource of their own."""
    wanted["spec"] = before.get("spec", {})


def _terminate_namespace(wanted: JsonObject, now: datetime) -> None:
    del now
    ensure_object(wanted, "status")["phase"] = "Terminating"


def _namespace_may_leave(wanted: JsonObject) -> bool:
    return not array_at(wanted, "spec", "finalizers")


def _fill_secret(wanted: JsonObject) -> None:
    """`stringData` is for writing only: it ends up, encoded, in `data`."""
    plain = string_map_at(wanted, "stringData")
    wanted.pop("stringData", None)
    if plain:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}
        ensure_object(wanted, "data").update(encoded)
    wanted.setdefault("type", "Opaque")


def _secret_problems(before: JsonObject | None, wanted: JsonObject) -> list[FieldProblem]:
    if before is not None and before.get("immutable") is True:
        return _immutable_data(before, wanted, ("data", "immutable"))
    if before is not None and before.get("type") != wanted.get("type"):
        return [field_problems.invalid("type", wanted.get("type"), "field is immutable")]
    return _key_problems(wanted)


def _check_texts(kind: str, name: str) -> Callable[[JsonObject], None]:
    """Refuse a map of anything but texts, as Go's decoder does."""

    def check(wanted: JsonObject) -> None:
        for value in object_at(wanted, name).values():
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


def _key_problems(wanted: JsonObject) -> list[FieldProblem]:
    return [
        field_problems.invalid(f"data[{key}]", key, _KEY_RULE)
        for key in object_at(wanted, "data")
        if _KEY.fullmatch(key) is None
    ]


def _config_map_problems(before: JsonObject | None, wanted: JsonObject) -> list[FieldProblem]:
    if before is not None and before.get("immutable") is True:
        return _immutable_data(before, wanted, ("data", "binaryData", "immutable"))
    return _key_problems(wanted)


def _immutable_data(
    before: JsonObject, wanted: JsonObject, names: tuple[str, ...]
) -> list[FieldProblem]:
    return [
        field_problems.forbidden(name, "field is immutable when `immutable` is set")
        for name in names
        if before.get(name) != wanted.get(name)
    ]


def _binding_problems(before: JsonObject | None, wanted: JsonObject) -> list[FieldProblem]:
    reference = object_at(wanted, "roleRef")
    if not string_at(reference, "name"):
        return [field_problems.required("roleRef.name")]
    if before is not None and before.get("roleRef") != reference:
        return [field_problems.invalid("roleRef", reference, "cannot change roleRef")]
    return []


def _fill_webhooks(wanted: JsonObject) -> None:
    for webhook in objects_at(wanted, "webhooks"):
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


def _webhook_problems(before: JsonObject | None, wanted: JsonObject) -> list[FieldProblem]:
    del before
    found: list[FieldProblem] = []
    for at, webhook in enumerate(objects_at(wanted, "webhooks")):
        path = f"webhooks[{at}]"
        if not strings_at(webhook, "admissionReviewVersions"):
            detail = "must specify one of v1, v1beta1"
            found.append(field_problems.required(f"{path}.admissionReviewVersions", detail))
        if string_at(webhook, "sideEffects") not in {"None", "NoneOnDryRun"}:
            detail = "must specify one of None, NoneOnDryRun"
            found.append(field_problems.required(f"{path}.sideEffects", detail))
        if array_at(webhook, "matchConditions"):
            # Refused, because a condition that is silently not checked guards the wrong requests.
            detail = "this server evaluates no CEL"
            found.append(field_problems.forbidden(f"{path}.matchConditions", detail))
    return found


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
        prepare_update=_keep_namespace,
        prepare_delete=_terminate_namespace,
        may_leave=_namespace_may_leave,
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
