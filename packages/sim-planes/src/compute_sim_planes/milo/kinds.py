"""Milo's kinds, labels and annotations as far as the simulation uses them.

All values are those in the recording of a real Milo.
"""

from __future__ import annotations

from typing import Final

from compute_sim_planes.client.rest import Resource

QUOTA_GROUP: Final = "quota.miloapis.com"
RESOURCE_MANAGER_GROUP: Final = "resourcemanager.miloapis.com"
VERSION: Final = "v1alpha1"

PROJECTS: Final = Resource(
    RESOURCE_MANAGER_GROUP, VERSION, "projects", "Project", is_namespaced=False
)
SUSPENSIONS: Final = Resource(
    RESOURCE_MANAGER_GROUP, VERSION, "projectsuspensions", "ProjectSuspension", is_namespaced=False
)
REGISTRATIONS: Final = Resource(
    QUOTA_GROUP, VERSION, "resourceregistrations", "ResourceRegistration", is_namespaced=False
)
GRANT_POLICIES: Final = Resource(
    QUOTA_GROUP, VERSION, "grantcreationpolicies", "GrantCreationPolicy", is_namespaced=False
)
GRANTS: Final = Resource(QUOTA_GROUP, VERSION, "resourcegrants", "ResourceGrant")
CLAIMS: Final = Resource(QUOTA_GROUP, VERSION, "resourceclaims", "ResourceClaim")
BUCKETS: Final = Resource(QUOTA_GROUP, VERSION, "allowancebuckets", "AllowanceBucket")
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    is_namespaced=False,
)

# Extras of a user inside a project, which name it.
PARENT: Final = "iam.miloapis.com/parent-"
MANAGER: Final = "milo-controller-manager"
SYSTEM_NAMESPACE: Final = "milo-system"
DEFAULT_NAMESPACE: Final = "default"
# The namespaces of a new project, each with its label.
PROJECT_NAMESPACES: Final = {
    DEFAULT_NAMESPACE: "miloapis.com/project-default",
    SYSTEM_NAMESPACE: "miloapis.com/system",
}
FINALIZER: Final = "resourcemanager.miloapis.com/project-controller"
# Milo deletes denied claims that have both.
AUTO_CREATED: Final = "quota.miloapis.com/auto-created"
CREATED_BY: Final = "quota.miloapis.com/created-by"
