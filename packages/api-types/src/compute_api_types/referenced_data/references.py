"""ConfigMaps and Secrets that a template names (`docs/spec/referenced-data.md` 1).

One function for admission and both operators, over the template as served, so that all of them
count the same objects. It accepts any document: what has the wrong type names nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"  # noqa: S105 - a kind

MOST_REFERENCES: Final = 64
"""ConfigMaps and Secrets that one template may name."""
LONGEST_NAME: Final = 243
"""Karmada names the binding of a delivered object `<name>-configmap`, in 253 characters."""
RESERVED_NAMES: Final = frozenset({"kube-root-ca.crt"})
"""Objects that each namespace of a cell has of its own, which a delivered one would replace."""

_Found: TypeAlias = "tuple[str, str, bool]"


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """One ConfigMap or Secret of the namespace of the Workload."""

    kind: str
    name: str
    is_optional: bool = False

    @property
    def token(self) -> str:
        """As in annotations and messages: `ConfigMap/app-config`."""
        return f"{self.kind}/{self.name}"


def references(template: object) -> tuple[Reference, ...]:
    """Every object that `spec.template` names, once, ConfigMaps first and then by name.

    Optional is an object of which every reference is optional.

    Example: a variable from key `a` of Secret `s` and a pull secret `s` are one `Secret/s`, which
    is required.
    """
    spec = _object(_object(template).get("spec"))
    optional: dict[tuple[str, str], bool] = {}
    for kind, name, is_optional in (*_of_sandbox(spec), *_of_volumes(spec)):
        if name:
            optional[kind, name] = optional.get((kind, name), True) and is_optional
    found = (Reference(*identity, is_optional) for identity, is_optional in optional.items())
    return tuple(sorted(found))


def _of_sandbox(spec: Mapping[str, object]) -> Iterator[_Found]:
    sandbox = _object(_object(spec.get("runtime")).get("sandbox"))
    for container in _objects(sandbox.get("containers")):
        for variable in _objects(container.get("env")):
            source = _object(variable.get("valueFrom"))
            yield _found(CONFIG_MAP, source.get("configMapKeyRef"))
            yield _found(SECRET, source.get("secretKeyRef"))
        for source in _objects(container.get("envFrom")):
            config_map, secret = source.get("configMapRef"), source.get("secretRef")
            if config_map is None or secret is None:
                yield _found(CONFIG_MAP, config_map)
                yield _found(SECRET, secret)
    for pull_secret in _objects(sandbox.get("imagePullSecrets")):
        yield SECRET, _text(pull_secret.get("name")), False


def _of_volumes(spec: Mapping[str, object]) -> Iterator[_Found]:
    for volume in _objects(spec.get("volumes")):
        yield _found(CONFIG_MAP, volume.get("configMap"))
        yield _found(SECRET, volume.get("secret"), "secretName")


def _found(kind: str, reference: object, field: str = "name") -> _Found:
    members = _object(reference)
    return kind, _text(members.get(field)), members.get("optional") is True


def _object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from map(_object, cast("Sequence[object]", value))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
