"""Karmada's kinds, labels, annotations and finalizers."""

from __future__ import annotations

from typing import Final

from compute_sim_planes.client.rest import Resource

POLICIES: Final = Resource(
    "policy.karmada.io", "v1alpha1", "propagationpolicies", "PropagationPolicy"
)
CLUSTER_POLICIES: Final = Resource(
    "policy.karmada.io",
    "v1alpha1",
    "clusterpropagationpolicies",
    "ClusterPropagationPolicy",
    is_namespaced=False,
)
BINDINGS: Final = Resource("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding")
WORKS: Final = Resource("work.karmada.io", "v1alpha1", "works", "Work")
CLUSTERS: Final = Resource(
    "cluster.karmada.io", "v1alpha1", "clusters", "Cluster", is_namespaced=False
)
CUSTOMIZATIONS: Final = Resource(
    "config.karmada.io",
    "v1alpha1",
    "resourceinterpretercustomizations",
    "ResourceInterpreterCustomization",
    is_namespaced=False,
)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
EVENTS: Final = Resource("", "v1", "events", "Event")
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    is_namespaced=False,
)

# Namespaces of the hub itself.
SYSTEM_NAMESPACE: Final = "karmada-system"
CLUSTER_NAMESPACE: Final = "karmada-cluster"
EXECUTION_PREFIX: Final = "karmada-es-"

POLICY_ID: Final = "propagationpolicy.karmada.io/permanent-id"
POLICY_NAMESPACE: Final = "propagationpolicy.karmada.io/namespace"
POLICY_NAME: Final = "propagationpolicy.karmada.io/name"
CLUSTER_POLICY_ID: Final = "clusterpropagationpolicy.karmada.io/permanent-id"
CLUSTER_POLICY_NAME: Final = "clusterpropagationpolicy.karmada.io/name"
BINDING_ID: Final = "resourcebinding.karmada.io/permanent-id"
BINDING_NAMESPACE: Final = "resourcebinding.karmada.io/namespace"
BINDING_NAME: Final = "resourcebinding.karmada.io/name"
WORK_ID: Final = "work.karmada.io/permanent-id"
WORK_NAMESPACE: Final = "work.karmada.io/namespace"
WORK_NAME: Final = "work.karmada.io/name"
CONFLICT_RESOLUTION: Final = "work.karmada.io/conflict-resolution"
TEMPLATE_UID: Final = "resourcetemplate.karmada.io/uid"
TEMPLATE_GENERATION: Final = "resourcetemplate.karmada.io/generation"
MANAGED_LABELS: Final = "resourcetemplate.karmada.io/managed-labels"
MANAGED_ANNOTATIONS: Final = "resourcetemplate.karmada.io/managed-annotations"
MANAGED: Final = "karmada.io/managed"
DEPENDENCIES: Final = "resourcebinding.karmada.io/dependencies"
DEPENDED_BY: Final = "resourcebinding.karmada.io/depended-by-"
APPLIED_PLACEMENT: Final = "policy.karmada.io/applied-placement"
SKIP_PROPAGATION: Final = "namespace.karmada.io/skip-auto-propagation"
SYSTEM_LABEL: Final = "karmada.io/system"

POLICY_FINALIZER: Final = "karmada.io/propagation-policy-controller"
CLUSTER_POLICY_FINALIZER: Final = "karmada.io/cluster-propagation-policy-controller"
BINDING_FINALIZER: Final = "karmada.io/binding-controller"
DEPENDENCIES_FINALIZER: Final = "karmada.io/binding-dependencies-distributor"
WORK_FINALIZER: Final = "karmada.io/execution-controller"
CLUSTER_FINALIZER: Final = "karmada.io/cluster-controller"

NOT_READY_TAINT: Final = "cluster.karmada.io/not-ready"
