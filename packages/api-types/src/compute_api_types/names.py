"""Derived object names and label values, and project identities encoded in labels.

Every object that an operator names is named here (`docs/spec/api.md` 11). The same input gives the
same name on every plane, no name is longer than its kind allows, and a label that does not decode
is an error, never another project. Whether a name is free is not checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final

from compute_api_types import labels
from compute_api_types.errors import ApiTypesError

LONGEST_LABEL: Final = 63
"""Longest DNS label and longest label value."""

# `-<ordinal>` up to 10⁹ still fits 63 behind these 52.
_LONGEST_DEPLOYMENT: Final = 52
_KEPT_OF_DEPLOYMENT: Final = 41
# One reconcile of a Workload derives the same names several times; cities are few.
_REMEMBERED: Final = 256

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ORDINAL: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_UNSAFE: Final = re.compile(r"[^a-z0-9-]")


class NamingError(ApiTypesError):
    """A name cannot be derived from what was given."""


class UndecodableIdentityError(ApiTypesError):
    """A label does not name the project of its object; the message has object and label."""

    def __init__(self, owner: str, label: str, detail: str) -> None:
        super().__init__(f"decoding label {label!r} of {owner}: {detail}")
        self.owner: Final = owner
        self.label: Final = label
        self.detail: Final = detail


def is_dns_label(text: str) -> bool:
    """Whether the text can name a namespace, a project or a placement."""
    return len(text) <= LONGEST_LABEL and _DNS_LABEL.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Whether the text can be a label's value; the empty one can."""
    return len(text) <= LONGEST_LABEL and _LABEL_VALUE.fullmatch(text) is not None


def is_routable_city(code: str) -> bool:
    """Whether a city code can route: it becomes a label value to select by, so never empty."""
    return bool(code) and _is_routable(code)


@lru_cache(maxsize=_REMEMBERED)
def _is_routable(code: str) -> bool:
    return is_label_value(code)


def sanitise(text: str) -> str:
    """`san` of api.md 11.1: lower case, a dash for all but letters, digits and dashes."""
    return _UNSAFE.sub("-", text.lower())


def _digest(text: str, digits: int) -> str:
    # A lone surrogate has no UTF-8 form; it must not turn a bad name into a traceback.
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


# --- deployments and instances (api.md 11.1, management.md 1.3) -----------------------------------


@dataclass(frozen=True, slots=True)
class DeploymentNames:
    """The two names a deployment may get: plain where short enough and free, else hashed."""

    plain: str | None
    hashed: str


def derive_deployment_names(
    *, workload: str, workload_uid: str, placement: str, city_code: str
) -> DeploymentNames:
    """Both names of the deployment of one identity; the plain one is used where it is free.

    Raises:
        NamingError: when a part of the identity is empty; such a deployment has none.
    """
    if not (workload and workload_uid and placement and city_code):
        raise NamingError("naming a deployment: workload, its uid, placement and city must be set")
    return _derive_deployment_names(workload, workload_uid, placement, city_code)


@lru_cache(maxsize=_REMEMBERED)
def _derive_deployment_names(
    workload: str, workload_uid: str, placement: str, city_code: str
) -> DeploymentNames:
    base = "-".join(sanitise(part) for part in (workload, placement, city_code))
    # NUL occurs in none of the parts, so two identities never give the same text.
    identity = f"{workload_uid}\0{placement}\0{city_code.lower()}"
    hashed = f"{base[:_KEPT_OF_DEPLOYMENT].rstrip('-')}-{_digest(identity, 10)}"
    return DeploymentNames(base if len(base) <= _LONGEST_DEPLOYMENT else None, hashed)


def derive_instance_name(deployment: str, ordinal: int) -> str:
    """The name of a slot, which is the name of every Instance in it.

    Raises:
        NamingError: when the ordinal is negative.
    """
    if ordinal < 0:
        raise NamingError(f"naming an instance of {deployment!r}: ordinal {ordinal} is negative")
    return f"{deployment}-{ordinal}"


def parse_instance_name(name: str) -> tuple[str, int] | None:
    """Deployment and ordinal of a slot's name, or None for a name of another form."""
    deployment, dash, ordinal = name.rpartition("-")
    if not (dash and deployment and _ORDINAL.fullmatch(ordinal)):
        return None
    return deployment, int(ordinal)


def parse_ordinal(deployment: str, name: str) -> int | None:
    """Which slot of this deployment a name is; None for a stray such as `-01` or no dash."""
    parsed = parse_instance_name(name)
    return parsed[1] if parsed and parsed[0] == deployment else None


# --- what goes with them (api.md 11.1) ------------------------------------------------------------


def derive_hub_namespace(namespace_uid: str) -> str:
    """The namespace on hub and cells that stands for one project namespace."""
    return f"ns-{namespace_uid}"


def parse_hub_namespace(name: str) -> str | None:
    """The UID of the project namespace a hub namespace stands for; None for any other."""
    prefix, dash, uid = name.partition("-")
    return uid if prefix == "ns" and dash and _UUID.fullmatch(uid) else None


def derive_policy_names(city_code: str) -> tuple[str, str]:
    """Base name and second name of the PropagationPolicy of a city; which is used: management.md 5.

    Raises:
        NamingError: when the code is empty: a policy for every city would take all.
    """
    if not city_code:
        raise NamingError("naming a policy: the city code must be set")
    return _derive_policy_names(city_code)


@lru_cache(maxsize=_REMEMBERED)
def _derive_policy_names(city_code: str) -> tuple[str, str]:
    base = f"city-{sanitise(city_code)}"
    return base, f"{base}-{_digest(city_code, 8)}"


def derive_network_binding_name(deployment: str, interface: int) -> str:
    """The NetworkBinding of one interface of a deployment."""
    return f"{deployment}-net-{interface}"


def derive_subnet_claim_name(network_context: str) -> str:
    """The SubnetClaim we make in a network context."""
    return f"{network_context}-0"


def derive_claim_name(instance: str) -> str:
    """The ResourceClaim of a slot."""
    return f"instance-{instance}"


def parse_claim_name(name: str) -> str | None:
    """The Instance, so the slot, that a claim belongs to, or None for a claim of another form."""
    prefix, dash, instance = name.partition("-")
    return instance if prefix == "instance" and dash and instance else None


CELL_LEASES: Final = "compute-cells"
"""The hub namespace with the Lease of each cell (dark-sites.md 2.1)."""


def derive_cell_lease(cell: str) -> str:
    """The Lease on the hub that a cell renews."""
    return f"compute-cell-{cell}"


def parse_cell_lease(name: str) -> str | None:
    """The cell that renews a Lease, or None for a Lease of another form."""
    prefix = "compute-cell-"
    cell = name.removeprefix(prefix)
    return cell if name.startswith(prefix) and is_dns_label(cell) else None


# --- label values (api.md 11.2, 11.3) -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelValue:
    """A value that fits a label; `full`, where it was cut, goes into an annotation of that key."""

    value: str
    full: str | None = None


def derive_label_value(text: str) -> LabelValue:
    """Any text as a label value: itself up to 63 characters, else shortened with its hash."""
    if len(text) <= LONGEST_LABEL:
        return LabelValue(text)
    return LabelValue(f"{text[:42].rstrip('-_.')}-{_digest(text, 20)}", text)


_CLUSTER_PREFIX: Final = "cluster-"
_HASHED_CLUSTER: Final = re.compile(r"cluster-h-[0-9a-f]{20}")


def encode_cluster_name(name: str) -> LabelValue:
    """The name of a project's plane as a label value.

    Raises:
        NamingError: when it is empty, or holds `_`, which stands for `/` in the encoding.
    """
    if not name or "_" in name:
        raise NamingError(f"encoding cluster name {name!r}: must not be empty or contain '_'")
    value = _CLUSTER_PREFIX + name.replace("/", "_")
    if len(value) > LONGEST_LABEL or _HASHED_CLUSTER.fullmatch(value):
        return LabelValue(_hashed_cluster(name), name)
    return LabelValue(value)


def _hashed_cluster(name: str) -> str:
    return f"{_CLUSTER_PREFIX}h-{_digest(name, 20)}"


def decode_cluster_name(value: str | None, full: str | None, *, owner: str) -> str:
    """The name a label, and the annotation beside it, encode; `owner` is the object they are on.

    Raises:
        UndecodableIdentityError: when they encode none.
    """
    if not value:
        raise _undecodable(owner, "the label is missing or empty")
    if _HASHED_CLUSTER.fullmatch(value):
        return _decode_hashed(value, full, owner)
    if not value.startswith(_CLUSTER_PREFIX) or value == _CLUSTER_PREFIX:
        raise _undecodable(owner, f"{value[:LONGEST_LABEL]!r} must be 'cluster-' and a name")
    return value.removeprefix(_CLUSTER_PREFIX).replace("_", "/")


def _decode_hashed(value: str, full: str | None, owner: str) -> str:
    if not full:
        raise _undecodable(owner, f"{value!r} needs the annotation of the same key")
    if _hashed_cluster(full) != value:
        raise _undecodable(owner, f"{value!r} is not the hash of the annotation of the same key")
    return full


def derive_bare_project(name: str, *, owner: str) -> str:
    """The last segment of a decoded name: the project id that plane keys and URLs use.

    Raises:
        UndecodableIdentityError: when that segment is empty.
    """
    bare = name.rpartition("/")[2]
    if not bare:
        raise _undecodable(owner, f"{name!r} must not end in '/'")
    return bare


def decode_project(
    object_labels: Mapping[str, str] | None,
    object_annotations: Mapping[str, str] | None,
    *,
    owner: str,
) -> str:
    """The project that an object's labels name; never the only evidence (README, decision 6).

    Raises:
        UndecodableIdentityError: when they name none.
    """
    key = labels.UPSTREAM_CLUSTER_NAME
    value = (object_labels or {}).get(key)
    name = decode_cluster_name(value, (object_annotations or {}).get(key), owner=owner)
    return derive_bare_project(name, owner=owner)


def _undecodable(owner: str, detail: str) -> UndecodableIdentityError:
    return UndecodableIdentityError(owner, labels.UPSTREAM_CLUSTER_NAME, detail)


# --- quarantine (api.md 10.2) ---------------------------------------------------------------------


def derive_quarantine_fingerprint(object_labels: Mapping[str, str] | None) -> str:
    """Digest of the four labels that a quarantine depends on; a change of status keeps it."""
    compared = (*labels.IDENTITY_LABELS, labels.WORKLOAD_DEPLOYMENT_NAME, labels.CELL)
    present = object_labels or {}
    return _digest("".join(f"{key}={present.get(key, '')};" for key in compared), 16)
