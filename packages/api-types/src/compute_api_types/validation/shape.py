"""The type of every field that an admission rule reads.

An API server refuses wrong types before it calls the webhook. A direct call of the rules, or an
object stored under another schema, can still have them: each gives one Invalid with what is
allowed. Fields that no rule reads are left to the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeAlias

from compute_api_types.quantity import QuantityError, parse_quantity
from compute_api_types.validation.document import Path, name_of
from compute_api_types.validation.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compute_api_types.validation.document import Document, Json
    from compute_api_types.validation.errors import Errors

_INT32: Final = 2**31


class Scalar(Enum):
    TEXT = auto()
    INTEGER = auto()
    QUANTITY = auto()


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with these fields; it may have others."""

    fields: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class Entries:
    """A map: the shape of one key (`only`), or of all of them."""

    each: Shape
    only: str | None = None


@dataclass(frozen=True, slots=True)
class Elements:
    """A list. Elements that have a name are known by it wherever they move (api.md 12.2)."""

    each: Shape
    named: bool = True


Shape: TypeAlias = Scalar | Fields | Entries | Elements

TEXT, INTEGER, QUANTITY = Scalar.TEXT, Scalar.INTEGER, Scalar.QUANTITY
ANY_OBJECT: Final = Fields({})

_METADATA: Final = Fields({"labels": Entries(TEXT), "annotations": Entries(TEXT)})
_ATTACHMENTS: Final = Elements(Fields({"name": TEXT, "mountPath": TEXT}))
_PORTS: Final = Elements(Fields({"name": TEXT, "port": INTEGER}))
_DISK_SPEC: Final = Fields(
    {
        "type": TEXT,
        "resources": Fields({"requests": Entries(QUANTITY, only="storage")}),
        "populator": Fields(
            {"image": Fields({"name": TEXT}), "filesystem": Fields({"type": TEXT})}
        ),
    }
)
_ITEMS: Final = Elements(Fields({"key": TEXT, "path": TEXT, "mode": INTEGER}), named=False)
_KEY: Final = Fields({"name": TEXT, "key": TEXT})
_NAMED: Final = Fields({"name": TEXT})
_VOLUME: Final = Fields(
    {
        "name": TEXT,
        "disk": Fields({"deviceName": TEXT, "template": Fields({"spec": _DISK_SPEC})}),
        "configMap": Fields({"name": TEXT, "defaultMode": INTEGER, "items": _ITEMS}),
        "secret": Fields({"secretName": TEXT, "defaultMode": INTEGER, "items": _ITEMS}),
    }
)
_ENVIRONMENT: Final = Elements(
    Fields(
        {
            "name": TEXT,
            "valueFrom": Fields(
                {
                    "configMapKeyRef": _KEY,
                    "secretKeyRef": _KEY,
                    "fieldRef": ANY_OBJECT,
                    "resourceFieldRef": ANY_OBJECT,
                }
            ),
        }
    )
)
_ENVIRONMENT_FROM: Final = Elements(
    Fields({"prefix": TEXT, "configMapRef": _NAMED, "secretRef": _NAMED}), named=False
)
_CONTAINER: Final = Fields(
    {
        "name": TEXT,
        "image": TEXT,
        "resources": ANY_OBJECT,
        "env": _ENVIRONMENT,
        "envFrom": _ENVIRONMENT_FROM,
        "volumeAttachments": _ATTACHMENTS,
        "ports": _PORTS,
    }
)
_RUNTIME: Final = Fields(
    {
        "resources": Fields({"instanceType": TEXT, "requests": ANY_OBJECT}),
        "sandbox": Fields(
            {
                "containers": Elements(_CONTAINER),
                "imagePullSecrets": Elements(_NAMED),
            }
        ),
        "virtualMachine": Fields({"volumeAttachments": _ATTACHMENTS, "ports": _PORTS}),
    }
)
_INTERFACES: Final = Elements(
    Fields({"network": Fields({"name": TEXT, "namespace": TEXT})}), named=False
)
_TEMPLATE_SPEC: Final = Fields(
    {
        "volumes": Elements(_VOLUME),
        "runtime": _RUNTIME,
        "networkInterfaces": _INTERFACES,
        "location": ANY_OBJECT,
        "controller": ANY_OBJECT,
    }
)
_TARGET: Final = Fields(
    {"value": QUANTITY, "averageValue": QUANTITY, "averageUtilization": INTEGER}
)
_SCALE_SETTINGS: Final = Fields(
    {
        "minReplicas": INTEGER,
        "maxReplicas": INTEGER,
        "metrics": Elements(
            Fields({"resource": Fields({"name": TEXT, "target": _TARGET})}), named=False
        ),
        "instanceManagementPolicy": TEXT,
    }
)
_PLACEMENT: Final = Fields(
    {"name": TEXT, "cityCodes": Elements(TEXT), "scaleSettings": _SCALE_SETTINGS}
)
_SPEC: Final = Fields(
    {
        "template": Fields({"metadata": _METADATA, "spec": _TEMPLATE_SPEC}),
        "placements": Elements(_PLACEMENT),
    }
)
WORKLOAD: Final = Fields({"metadata": Fields({"name": TEXT, "namespace": TEXT}), "spec": _SPEC})


def review_shape(document: Document) -> Errors:
    """One Invalid for every value that has another type than its field."""
    return _review(document, WORKLOAD, Path())


def _review(value: Json, shape: Shape, path: Path) -> Errors:
    # null is absent (api.md 14, trap 7); the rules decide whether a field may be absent.
    if value is None:
        return
    if isinstance(shape, Scalar):
        problem = _PROBLEMS[shape](value)
        if problem:
            yield invalid(path, value, problem)
    elif isinstance(shape, Elements):
        yield from _review_elements(value, shape, path)
    elif isinstance(value, Mapping):
        for inner, each, below in _members(value, shape, path):
            yield from _review(inner, each, below)
    else:
        yield invalid(path, value, "must be an object")


def _members(
    value: Document, shape: Fields | Entries, path: Path
) -> Iterator[tuple[Json, Shape, Path]]:
    if isinstance(shape, Fields):
        for name, inner in shape.fields.items():
            yield value.get(name), inner, path.field(name)
    else:
        for key in sorted(value) if shape.only is None else (shape.only,):
            yield value.get(key), shape.each, path.key(key)


def _review_elements(value: Json, shape: Elements, path: Path) -> Errors:
    if isinstance(value, str) or not isinstance(value, Sequence):
        yield invalid(path, value, "must be a list")
        return
    for index, element in enumerate(value):
        # City codes come by the thousand; a path is made for those that need one.
        if shape.each is TEXT and isinstance(element, str):
            continue
        known_as = name_of(element) if shape.named else None
        yield from _review(element, shape.each, path.index(index, known_as))


def _text_problem(value: Json) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def _integer_problem(value: Json) -> str | None:
    # A JSON `true` is an int to Python. Every integer that a rule reads is an int32 in the schema.
    if isinstance(value, int) and not isinstance(value, bool) and -_INT32 <= value < _INT32:
        return None
    return f"must be an integer between {-_INT32} and {_INT32 - 1}"


def _quantity_problem(value: Json) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return "must be a quantity: an integer or a string such as 10Gi"
    try:
        parse_quantity(value)
    except QuantityError as error:
        return error.detail
    return None


_PROBLEMS: Final[Mapping[Scalar, Callable[[Json], str | None]]] = {
    TEXT: _text_problem,
    INTEGER: _integer_problem,
    QUANTITY: _quantity_problem,
}
