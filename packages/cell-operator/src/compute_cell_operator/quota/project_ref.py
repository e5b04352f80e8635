"""References of quota: the project that pays for a Namespace, and its claims. Pure (cell.md 1).

A label can be forged or stale. So a billing project also holds the UID that its namespace must
have, and no claim is made in that namespace before the UID was compared (quota.md B1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compute_api_types import labels, names
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.objects import Metadata


@dataclass(frozen=True, slots=True)
class BillingProject:
    """The project and namespace to claim quota in, by the labels of a cell Namespace."""

    project: str
    namespace: str
    namespace_uid: str  # the UID that the project namespace must have


@dataclass(frozen=True, slots=True)
class ProjectUnresolvable:
    """B4 row 2: the labels name no project or namespace, or the namespace has another UID."""

    what: Literal["ID", "namespace"]
    detail: str


@dataclass(frozen=True, slots=True, order=True)
class ClaimRef:
    """A ResourceClaim in all projects; `ClaimKey` of the client is namespace and name in one."""

    project: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class InstanceRef:
    """The Instance that a claim is made for."""

    namespace: str
    name: str
    uid: Uid


@dataclass(frozen=True, slots=True)
class ClaimSubject:
    """The Instance that a claim records; "" for what it does not record."""

    namespace: str
    uid: str


def derive_billing_project(namespace: Metadata) -> BillingProject | ProjectUnresolvable:
    """The project and its namespace by the labels of a cell Namespace."""
    owner = f'Namespace "{namespace.name}"'
    try:
        project = names.decode_project(namespace.labels, namespace.annotations, owner=owner)
    except names.UndecodableIdentityError as cause:
        return ProjectUnresolvable("ID", str(cause))
    if not names.is_dns_label(project):
        detail = f"{project[:63]!r} is no DNS label"
        return ProjectUnresolvable("ID", _blame(owner, labels.UPSTREAM_CLUSTER_NAME, detail))
    within = namespace.labels.get(labels.UPSTREAM_NAMESPACE, "")
    if not names.is_dns_label(within):
        detail = f"{within[:63]!r} is no DNS label" if within else "the label is missing or empty"
        return ProjectUnresolvable("namespace", _blame(owner, labels.UPSTREAM_NAMESPACE, detail))
    namespace_uid = names.parse_hub_namespace(namespace.name)
    if namespace_uid is None:
        return ProjectUnresolvable("namespace", f"{owner} is not named after a project namespace")
    return BillingProject(project, within, namespace_uid)


def _blame(owner: str, label: str, detail: str) -> str:
    return f"label {label!r} of {owner}: {detail}"


def derive_claim_ref(billing: BillingProject, instance: str) -> ClaimRef:
    return ClaimRef(billing.project, billing.namespace, names.derive_claim_name(instance))
