"""The built-in kinds of a plane: stored and watched like any other, without behaviour of their own.

A table, because clients see few differences: names, scope, status, generation, and whether a PUT
needs a resourceVersion. Namespaces, CRDs and admission have controllers elsewhere; Deployments,
Services and the like are only stored, so that manifests can be applied and read back.
"""

from __future__ import annotations

from typing import Final, TypedDict, Unpack

from compute_sim_planes.api_server.kinds.kind import ALL_VERBS, Kind

_REVIEW: Final = ("create",)


class _Rules(TypedDict, total=False):
    """Properties of a built-in kind; an absent key means the default that `_kind` sets."""

    namespaced: bool
    has_status: bool
    tracks_generation: bool
    unconditional_update: bool
    create_on_update: bool
    returns_deleted: bool
    subresources: tuple[str, ...]
    verbs: tuple[str, ...]
    selectable_fields: tuple[str, ...]
    categories: tuple[str, ...]


def _kind(api_version: str, kind: str, names: str, **rules: Unpack[_Rules]) -> Kind:
    """`names` is the plural and the short names, as `kubectl api-resources` prints them."""
    group, _, version = api_version.rpartition("/")
    plural, *short_names = names.split()
    return Kind(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        list_kind=f"{kind}List",
        short_names=tuple(short_names),
        built_in=True,
        # Most built-in kinds are namespaced, have no generation, and accept a PUT without a
        # resourceVersion.
        namespaced=rules.get("namespaced", True),
        tracks_generation=rules.get("tracks_generation", False),
        unconditional_update=rules.get("unconditional_update", True),
        has_status=rules.get("has_status", False),
        create_on_update=rules.get("create_on_update", False),
        returns_deleted=rules.get("returns_deleted", False),
        subresources=rules.get("subresources", ()),
        verbs=rules.get("verbs", ALL_VERBS),
        selectable_fields=rules.get("selectable_fields", ()),
        categories=rules.get("categories", ()),
    )


_EVENT_FIELDS: Final = (
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "source",
    "type",
)

_CORE: Final = (
    _kind(
        "v1",
        "Namespace",
        "namespaces ns",
        namespaced=False,
        has_status=True,
        returns_deleted=True,
        subresources=("finalize",),
        selectable_fields=("status.phase", "name"),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    _kind(
        "v1",
        "Event",
        "events ev",
        selectable_fields=_EVENT_FIELDS,
        create_on_update=True,
    ),
    _kind("v1", "ConfigMap", "configmaps cm"),
    _kind(
        "v1",
        "Secret",
        "secrets",
        selectable_fields=("type",),
    ),
    _kind("v1", "ServiceAccount", "serviceaccounts sa", returns_deleted=True),
    _kind(
        "v1",
        "Service",
        "services svc",
        has_status=True,
        returns_deleted=True,
        categories=("all",),
        selectable_fields=("spec.clusterIP", "spec.type"),
    ),
    _kind(
        "v1",
        "Pod",
        "pods po",
        has_status=True,
        returns_deleted=True,
        categories=("all",),
        selectable_fields=("spec.nodeName", "status.phase"),
    ),
    _kind("v1", "Node", "nodes no", namespaced=False, has_status=True),
    _kind("v1", "Endpoints", "endpoints ep"),
    _kind("v1", "LimitRange", "limitranges limits"),
    _kind("v1", "ResourceQuota", "resourcequotas quota", has_status=True, returns_deleted=True),
)

_WORKLOADS: Final = (
    _kind(
        "apps/v1",
        "Deployment",
        "deployments deploy",
        has_status=True,
        tracks_generation=True,
        categories=("all",),
    ),
    _kind(
        "apps/v1",
        "ReplicaSet",
        "replicasets rs",
        has_status=True,
        tracks_generation=True,
        categories=("all",),
    ),
    _kind(
        "apps/v1",
        "StatefulSet",
        "statefulsets sts",
        has_status=True,
        tracks_generation=True,
        categories=("all",),
    ),
    _kind(
        "apps/v1",
        "DaemonSet",
        "daemonsets ds",
        has_status=True,
        tracks_generation=True,
        categories=("all",),
    ),
    _kind("batch/v1", "Job", "jobs", has_status=True, tracks_generation=True, categories=("all",)),
    _kind(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets pdb",
        has_status=True,
        tracks_generation=True,
        unconditional_update=False,
    ),
    _kind(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers hpa",
        has_status=True,
        categories=("all",),
    ),
    _kind(
        "networking.k8s.io/v1", "NetworkPolicy", "networkpolicies netpol", tracks_generation=True
    ),
    _kind(
        "coordination.k8s.io/v1",
        "Lease",
        "leases",
        create_on_update=True,
        unconditional_update=False,
    ),
    _kind(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "priorityclasses pc",
        namespaced=False,
        tracks_generation=True,
    ),
)

_ACCESS: Final = (
    _kind(
        "rbac.authorization.k8s.io/v1",
        "Role",
        "roles",
        create_on_update=True,
    ),
    _kind(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
        namespaced=False,
        create_on_update=True,
    ),
    _kind(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "rolebindings",
        create_on_update=True,
    ),
    _kind(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        namespaced=False,
        create_on_update=True,
    ),
    _kind(
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        namespaced=False,
        verbs=_REVIEW,
    ),
    _kind(
        "authorization.k8s.io/v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        verbs=_REVIEW,
    ),
    _kind(
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        namespaced=False,
        verbs=_REVIEW,
    ),
    _kind(
        "authorization.k8s.io/v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        namespaced=False,
        verbs=_REVIEW,
    ),
    _kind(
        "authentication.k8s.io/v1", "TokenReview", "tokenreviews", namespaced=False, verbs=_REVIEW
    ),
    _kind(
        "authentication.k8s.io/v1",
        "SelfSubjectReview",
        "selfsubjectreviews",
        namespaced=False,
        verbs=_REVIEW,
    ),
)

_ADMISSION: Final = (
    _kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        namespaced=False,
        tracks_generation=True,
        unconditional_update=False,
        categories=("api-extensions",),
    ),
    _kind(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        namespaced=False,
        tracks_generation=True,
        unconditional_update=False,
        categories=("api-extensions",),
    ),
    _kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        namespaced=False,
        tracks_generation=True,
        has_status=True,
        unconditional_update=False,
        categories=("api-extensions",),
    ),
    _kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        namespaced=False,
        tracks_generation=True,
        unconditional_update=False,
        categories=("api-extensions",),
    ),
)

_EXTENSIONS: Final = (
    _kind(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions crd crds",
        namespaced=False,
        has_status=True,
        tracks_generation=True,
        unconditional_update=False,
        categories=("api-extensions",),
    ),
    _kind(
        "apiregistration.k8s.io/v1",
        "APIService",
        "apiservices",
        namespaced=False,
        has_status=True,
        unconditional_update=False,
        categories=("api-extensions",),
    ),
)

BUILTIN_KINDS: Final[tuple[Kind, ...]] = (
    *_CORE,
    *_WORKLOADS,
    *_ACCESS,
    *_ADMISSION,
    *_EXTENSIONS,
)

# The groups that a Milo project plane serves: no pods, nodes, services, service accounts or quotas
# (neighbours.md 2.2).
PROJECT_PLANE_GROUPS: Final = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "coordination.k8s.io",
        "rbac.authorization.k8s.io",
    }
)
_PROJECT_PLANE_CORE: Final = frozenset({"configmaps", "events", "namespaces", "secrets"})


def project_plane_kinds() -> tuple[Kind, ...]:
    """The built-in kinds of a Milo project plane."""
    return tuple(
        kind
        for kind in BUILTIN_KINDS
        if kind.group in PROJECT_PLANE_GROUPS and (kind.group or kind.plural in _PROJECT_PLANE_CORE)
    )
