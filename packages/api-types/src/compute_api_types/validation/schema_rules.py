"""CEL rules of the Workload CRD, evaluated by the API server of a project without any webhook.

They repeat the admission rules whose breach an operator could not make good: a Workload that was
stored while the webhook was not registered must neither carry what the platform alone sets nor ask
for what has no meaning. Each costs little per object, because a server estimates the worst case
of a rule from the bounds of its lists, and most lists here have none.

Workloads alone have rules. WorkloadDeployments and Instances are copied from plane to plane, and a
server that refuses a copy of an object which its own plane stored would stop the copying.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from compute_api_types.labels import RESERVED_PREFIXES, USER_ANNOTATIONS

if TYPE_CHECKING:
    from compute_api_types.wire import JsonObject

Reason: TypeAlias = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired"]

INVALID: Final = "FieldValueInvalid"
FORBIDDEN: Final = "FieldValueForbidden"
REQUIRED: Final = "FieldValueRequired"

MOST_REPLICAS: Final = 1000


@dataclass(frozen=True, slots=True)
class SchemaRule:
    """One entry of `x-kubernetes-validations`."""

    rule: str
    message: str
    reason: Reason = INVALID
    field_path: str = ""
    """The field a refusal names, below the one that has the rule."""

    def to_document(self) -> JsonObject:
        """The entry as a CRD has it."""
        document: JsonObject = {
            "rule": self.rule,
            "message": self.message,
            "reason": self.reason,
        }
        return document | ({"fieldPath": self.field_path} if self.field_path else {})


def _reserved(allowed: tuple[str, ...] = ()) -> SchemaRule:
    """No key of a map is one of those that the platform sets."""
    own = " || ".join(f"key.startsWith('{prefix}')" for prefix in RESERVED_PREFIXES)
    excepted = "".join(f" || key == '{key}'" for key in allowed)
    return SchemaRule(
        f"self.all(key, !({own}){excepted})",
        f"keys under {' and '.join(RESERVED_PREFIXES)} are set by the platform",
        FORBIDDEN,
    )


_TEMPLATE: Final = "spec.template"
_SCALE: Final = "spec.placements[].scaleSettings"
_ONE_SOURCE: Final = "a volume has exactly one source"

# By the field that has them; the numbers are those of the admission rules (api.md 12.3).
WORKLOAD_RULES: Final[Mapping[str, tuple[SchemaRule, ...]]] = {
    f"{_TEMPLATE}.metadata.labels": (_reserved(),),  # 57
    f"{_TEMPLATE}.metadata.annotations": (_reserved(USER_ANNOTATIONS),),  # 58
    f"{_TEMPLATE}.spec": (
        SchemaRule(  # 60
            "!has(self.location)", "set by the platform", FORBIDDEN, ".location"
        ),
        SchemaRule(  # 61
            "!has(self.controller)", "set by the platform", FORBIDDEN, ".controller"
        ),
    ),
    f"{_TEMPLATE}.spec.runtime": (
        SchemaRule(  # 36
            "!has(self.sandbox) || !has(self.virtualMachine)",
            "an instance has either a sandbox or a virtualMachine",
            FORBIDDEN,
            ".virtualMachine",
        ),
        SchemaRule(  # 41
            "has(self.sandbox) || has(self.virtualMachine)",
            "must have a sandbox or a virtualMachine",
            REQUIRED,
        ),
    ),
    f"{_TEMPLATE}.spec.volumes[]": (
        SchemaRule(  # 15
            "!has(self.configMap) || !has(self.disk)", _ONE_SOURCE, FORBIDDEN, ".configMap"
        ),
        SchemaRule(  # 15
            "!has(self.secret) || !(has(self.disk) || has(self.configMap))",
            _ONE_SOURCE,
            FORBIDDEN,
            ".secret",
        ),
        SchemaRule(  # 19
            "has(self.disk) || has(self.configMap) || has(self.secret)",
            "must have one of disk, configMap or secret",
            REQUIRED,
        ),
    ),
    "spec.placements[].cityCodes": (
        SchemaRule("size(self) > 0", "a placement names at least one city", REQUIRED),  # 47
    ),
    f"{_SCALE}.minReplicas": (
        SchemaRule(  # 49
            f"self >= 1 && self <= {MOST_REPLICAS}", f"must be between 1 and {MOST_REPLICAS}"
        ),
    ),
    f"{_SCALE}.maxReplicas": (
        SchemaRule(f"self <= {MOST_REPLICAS}", f"must be at most {MOST_REPLICAS}"),  # 68
    ),
    _SCALE: (
        SchemaRule(  # 64
            "!has(self.maxReplicas) || self.maxReplicas >= self.minReplicas",
            "must not be less than minReplicas",
            INVALID,
            ".maxReplicas",
        ),
    ),
}
"""The rules of the Workload CRD, by path; elements of a list end in `[]`."""
