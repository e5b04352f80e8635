"""Typed models, names, conditions and admission rules of `compute.datumapis.com/v1alpha`.

Made for any Datum service: pydantic is the only dependency, and nothing here talks to a server.
Modules of constants and pure functions are imported as such (`compute_api_types.labels`, `reasons`,
`names`, `conditions`, `quantity`, `validation`); the root exports the names below, and
`compute_api_types.v1alpha` every model of the API.

A name is imported when it is first used, as in pydantic itself: a service that needs `labels` alone
does not load every model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from compute_api_types.changes import WriteBack
    from compute_api_types.conditions import Condition, ConditionStatus, Statement
    from compute_api_types.errors import ApiTypesError
    from compute_api_types.meta import (
        ObjectMeta,
        OwnerReference,
        PartialObject,
        Resource,
        TemplateMeta,
        TimestampError,
        format_timestamp,
        parse_timestamp,
    )
    from compute_api_types.model import Model
    from compute_api_types.names import NamingError, UndecodableIdentityError
    from compute_api_types.problems import FieldProblem, MalformedObjectError, ProblemKind
    from compute_api_types.quantity import QuantityError, parse_quantity
    from compute_api_types.template_hash import (
        HashVerdict,
        derive_template_hash,
        judge_template_hash,
    )
    from compute_api_types.v1alpha.instance import (
        Instance,
        InstanceSpec,
        InstanceStatus,
        InstanceTemplate,
        LocationReference,
        SchedulingGate,
    )
    from compute_api_types.v1alpha.scale_settings import ScaleSettings
    from compute_api_types.v1alpha.workload import (
        Placement,
        PlacementStatus,
        Workload,
        WorkloadSpec,
        WorkloadStatus,
    )
    from compute_api_types.v1alpha.workload_deployment import (
        WorkloadDeployment,
        WorkloadDeploymentSpec,
        WorkloadDeploymentStatus,
        WorkloadReference,
    )
    from compute_api_types.wire import JsonObject, JsonValue, overlay

    __version__: str

__all__ = [
    "ApiTypesError",
    "Condition",
    "ConditionStatus",
    "FieldProblem",
    "HashVerdict",
    "Instance",
    "InstanceSpec",
    "InstanceStatus",
    "InstanceTemplate",
    "JsonObject",
    "JsonValue",
    "LocationReference",
    "MalformedObjectError",
    "Model",
    "NamingError",
    "ObjectMeta",
    "OwnerReference",
    "PartialObject",
    "Placement",
    "PlacementStatus",
    "ProblemKind",
    "QuantityError",
    "Resource",
    "ScaleSettings",
    "SchedulingGate",
    "Statement",
    "TemplateMeta",
    "TimestampError",
    "UndecodableIdentityError",
    "Workload",
    "WorkloadDeployment",
    "WorkloadDeploymentSpec",
    "WorkloadDeploymentStatus",
    "WorkloadReference",
    "WorkloadSpec",
    "WorkloadStatus",
    "WriteBack",
    "derive_template_hash",
    "format_timestamp",
    "judge_template_hash",
    "overlay",
    "parse_quantity",
    "parse_timestamp",
]

_HOMES: Final = {
    "changes": ("WriteBack",),
    "errors": ("ApiTypesError",),
    "conditions": ("Condition", "ConditionStatus", "Statement"),
    "meta": (
        "ObjectMeta",
        "OwnerReference",
        "PartialObject",
        "Resource",
        "TemplateMeta",
        "TimestampError",
        "format_timestamp",
        "parse_timestamp",
    ),
    "model": ("Model",),
    "names": ("NamingError", "UndecodableIdentityError"),
    "problems": ("FieldProblem", "MalformedObjectError", "ProblemKind"),
    "quantity": ("QuantityError", "parse_quantity"),
    "template_hash": ("HashVerdict", "derive_template_hash", "judge_template_hash"),
    "v1alpha.instance": (
        "Instance",
        "InstanceSpec",
        "InstanceStatus",
        "InstanceTemplate",
        "LocationReference",
        "SchedulingGate",
    ),
    "v1alpha.scale_settings": ("ScaleSettings",),
    "v1alpha.workload": (
        "Placement",
        "PlacementStatus",
        "Workload",
        "WorkloadSpec",
        "WorkloadStatus",
    ),
    "v1alpha.workload_deployment": (
        "WorkloadDeployment",
        "WorkloadDeploymentSpec",
        "WorkloadDeploymentStatus",
        "WorkloadReference",
    ),
    "wire": ("JsonObject", "JsonValue", "overlay"),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _read_version()
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    # Kept, so that the next access does not come here.
    globals()[name] = value
    return value


def _read_version() -> str:
    # Reading the metadata of a distribution takes longer than importing this module.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("datum-compute-api-types")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
