"""The order of a rendering: kustomize's, in which what others need comes first. Pure."""

from __future__ import annotations

from typing import Final

from e2e.kustomization.resources import Resource

_FIRST: Final = (
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
)
_LAST: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_RANKS: Final = {
    **{kind: at - len(_FIRST) for at, kind in enumerate(_FIRST)},
    **{kind: at + 1 for at, kind in enumerate(_LAST)},
}


def sort_key(resource: Resource) -> tuple[int, str, str, str]:
    """Rank of the kind, then its name with the core group last, then namespace and name."""
    identity = resource.identity
    kind = f"{identity.group or '~G'}_{identity.version}_{identity.kind}"
    return _RANKS.get(identity.kind, 0), kind, identity.namespace or "~X", identity.name
