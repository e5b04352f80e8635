"""Rules 70–79: ConfigMaps and Secrets that a template names (`docs/spec/referenced-data.md` 7).

They apply where referenced data is delivered. Rule 79 needs a SubjectAccessReview per object: a
container would otherwise show any Secret of the namespace to each writer of Workloads. This module
lists the objects to review and evaluates the answers; it sends no request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from compute_api_types.referenced_data.references import (
    CONFIG_MAP,
    LONGEST_NAME,
    MOST_REFERENCES,
    RESERVED_NAMES,
    references,
)
from compute_api_types.validation.errors import forbidden, invalid, required
from compute_api_types.validation.facts import Review

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compute_api_types.referenced_data.references import Reference
    from compute_api_types.validation.document import Json, Node, Path
    from compute_api_types.validation.errors import Errors

_LARGEST_MODE: Final = 0o777
_MODE_DETAIL: Final = "must be between 0 and 511 (octal 0777)"
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_DETAIL: Final = (
    "must consist of lower case letters, digits, '-' and '.', and each part between dots must "
    "start and end with a letter or digit"
)
_C_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV_SOURCES: Final = ("configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef")
_ENV_FROM_SOURCES: Final = ("configMapRef", "secretRef")


def review_references(template_spec: Node, reviews: Mapping[str, Review]) -> Errors:
    """All rules of this module; rule 79 checks objects with an entry in `reviews`."""
    for volume in template_spec.elements("volumes"):
        yield from _review_volume(volume)
    sandbox = template_spec.section("runtime").section("sandbox")
    for container in sandbox.elements("containers"):
        for variable in container.elements("env"):
            yield from _review_variable(variable)
        for source in container.elements("envFrom", named=False):
            yield from _review_env_from(source)
    for secret in sandbox.elements("imagePullSecrets"):
        yield from _review_form(secret.path.field("name"), secret.text("name"))
    named = references({"spec": template_spec.content})
    yield from review_count(template_spec, named)
    yield from review_access(template_spec, reviews)


def review_count(template_spec: Node, named: Sequence[Reference]) -> Errors:
    if len(named) > MOST_REFERENCES:  # 78
        detail = f"must not reference more than {MOST_REFERENCES} ConfigMaps and Secrets"
        yield invalid(template_spec.path, len(named), detail)


def review_access(template_spec: Node, reviews: Mapping[str, Review]) -> Errors:
    for reference in references({"spec": template_spec.content}):
        if reviews.get(reference.token) is Review.DENIED:  # 79
            field = "configmaps" if reference.kind == CONFIG_MAP else "secrets"
            detail = f"you may not read this {reference.kind}: the verb get is needed"
            yield forbidden(template_spec.path.field(field).key(reference.name), detail)


def find_new_references(wanted: Json, stored: Json) -> tuple[Reference, ...]:
    """The objects that the wanted template names and the stored one does not, in order."""
    known = {reference.token for reference in references(stored)}
    return tuple(reference for reference in references(wanted) if reference.token not in known)


def _review_volume(volume: Node) -> Errors:
    """Rules 70–73; a second source of a volume is refused by rule 15 and not read."""
    if volume.has("disk"):
        return
    config_map = volume.object("configMap")
    if config_map is not None:  # its other fields: 16, 17
        yield from _review_form(config_map.path.field("name"), config_map.text("name"))
        yield from _review_items(config_map)
    elif (secret := volume.object("secret")) is not None:
        yield from _review_name(secret, "secretName", "the Secret to read")  # 70
        mode = secret.integer("defaultMode")
        if mode is not None and not 0 <= mode <= _LARGEST_MODE:  # 71
            yield invalid(secret.path.field("defaultMode"), mode, _MODE_DETAIL)
        yield from _review_items(secret)


def _review_items(source: Node) -> Errors:
    for item in source.elements("items", named=False):
        if not item.text("key"):  # 72
            yield required(item.path.field("key"), "the key to read")
        path = item.text("path")
        if not path:  # 73
            yield required(item.path.field("path"), "the file to write")
        elif path.startswith("/") or ".." in path.split("/"):
            detail = "must be relative to the mount, without '..'"
            yield invalid(item.path.field("path"), path, detail)
        mode = item.integer("mode")
        if mode is not None and not 0 <= mode <= _LARGEST_MODE:
            yield invalid(item.path.field("mode"), mode, _MODE_DETAIL)


def _review_variable(variable: Node) -> Errors:
    source = variable.object("valueFrom")
    if source is None:
        return
    present = [name for name in _ENV_SOURCES if source.has(name)]
    if not present:  # 74
        yield required(source.path, f"must have one of {', '.join(_ENV_SOURCES)}")
        return
    for other in present[1:]:
        yield forbidden(source.path.field(other), "a variable has exactly one source")
    if present[0] in {"configMapKeyRef", "secretKeyRef"}:
        reference = source.section(present[0])
        yield from _review_name(reference, "name", "the object to read")  # 75
        if not reference.text("key"):
            yield required(reference.path.field("key"), "the key to read")


def _review_env_from(source: Node) -> Errors:
    present = [name for name in _ENV_FROM_SOURCES if source.has(name)]
    if not present:  # 76
        yield required(source.path, "must have one of configMapRef or secretRef")
    else:
        yield from _review_name(source.section(present[0]), "name", "the object to read")  # 75
    for other in present[1:]:
        yield forbidden(source.path.field(other), "exactly one of the two is allowed")
    prefix = source.text("prefix")
    if prefix and _C_IDENTIFIER.fullmatch(prefix) is None:
        detail = "must consist of letters, digits and '_', and must not start with a digit"
        yield invalid(source.path.field("prefix"), prefix, detail)


def _review_name(source: Node, field: str, detail: str) -> Errors:
    path = source.path.field(field)
    if not source.text(field):
        yield required(path, detail)
    else:
        yield from _review_form(path, source.text(field))


def _review_form(path: Path, name: str) -> Errors:
    """Rule 77: what an object of the project can be called, and be delivered as."""
    if not name:
        return
    if len(name) > LONGEST_NAME:
        yield invalid(path, name, f"must have at most {LONGEST_NAME} characters")
    elif _SUBDOMAIN.fullmatch(name) is None:
        yield invalid(path, name, _SUBDOMAIN_DETAIL)
    elif name in RESERVED_NAMES:
        yield forbidden(path, "this name belongs to an object that each namespace has of its own")
