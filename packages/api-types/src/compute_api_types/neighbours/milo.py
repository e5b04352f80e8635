"""Milo's Project at the root: which planes exist (`docs/spec/neighbours.md` 2.1).

Quota claims are not modelled here: they belong to quota-client, which stands alone.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from compute_api_types.conditions import READY, is_true
from compute_api_types.meta import ObjectMeta, Resource
from compute_api_types.model import Model
from compute_api_types.neighbours.foreign import ForeignStatus


class Project(Model):
    """A project; its control plane is engaged once it is ready, and until it is gone."""

    api_version: Literal["resourcemanager.miloapis.com/v1alpha1"] = (
        "resourcemanager.miloapis.com/v1alpha1"
    )
    kind: Literal["Project"] = "Project"
    metadata: ObjectMeta
    status: ForeignStatus | None = None

    RESOURCE: ClassVar = Resource(
        "resourcemanager.miloapis.com", "v1alpha1", "Project", "projects", namespaced=False
    )

    @property
    def is_ready(self) -> bool:
        """Whether its control plane can be engaged; Milo leaves this True while it is deleted."""
        return is_true(self.status.conditions if self.status else None, READY)
