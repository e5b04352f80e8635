"""A resource on its way through a rendering: what it is, and under which names it came. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.kustomization.documents import text_at
from e2e.kustomization.errors import KustomizationError

# kustomize has this list built in; a kind it does not know counts as namespaced, admission policies
# included, and gets a namespace where one is set.
_CLUSTER_SCOPED: Final = {
    "": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
    "admissionregistration.k8s.io": {
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    },
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "apiregistration.k8s.io": {"APIService"},
    "certificates.k8s.io": {"CertificateSigningRequest"},
    "networking.k8s.io": {"IngressClass"},
    "node.k8s.io": {"RuntimeClass"},
    "rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
    "scheduling.k8s.io": {"PriorityClass"},
    "storage.k8s.io": {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"},
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a resource from all others."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str

    @property
    def effective_namespace(self) -> str:
        """The namespace it means: none is `default`, except where there are none at all."""
        if self.kind in _CLUSTER_SCOPED.get(self.group, ()):
            return ""
        return self.namespace or "default"

    @property
    def is_cluster_scoped(self) -> bool:
        return self.kind in _CLUSTER_SCOPED.get(self.group, ())

    def is_same(self, other: Identity) -> bool:
        mine, theirs = (
            (one.group, one.version, one.kind, one.effective_namespace, one.name)
            for one in (self, other)
        )
        return mine == theirs


def identity_of(document: JsonObject) -> Identity:
    group, _, version = text_at(document, "apiVersion").rpartition("/")
    return Identity(
        group,
        version,
        text_at(document, "kind"),
        text_at(document, "metadata", "namespace"),
        text_at(document, "metadata", "name"),
    )


@dataclass(frozen=True, slots=True)
class Resource:
    """A document and its history; never changed, only followed by another."""

    document: JsonObject
    # Oldest first; the first is what it was called in its file.
    earlier: tuple[Identity, ...] = ()
    needs_hash: bool = False

    @property
    def identity(self) -> Identity:
        return identity_of(self.document)

    @property
    def identities(self) -> tuple[Identity, ...]:
        return (*self.earlier, self.identity)

    def become(self, document: JsonObject) -> Resource:
        """The same resource with another document; it stays known under its former names."""
        if identity_of(document) == self.identity:
            return replace(self, document=document)
        return replace(self, document=document, earlier=self.identities)


def a_resource(document: JsonObject, source: str) -> Resource:
    """A resource as it was read; one without kind or name is none."""
    found = identity_of(document)
    if not found.kind or not found.version or not found.name:
        raise KustomizationError(f"reading {source}: an object without apiVersion, kind or name")
    return Resource(document)
