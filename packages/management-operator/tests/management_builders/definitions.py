"""The kinds of the world: their definitions, and what a history calls them."""

from __future__ import annotations

from functools import cache
from typing import Final

import orjson

from compute_api_types.crd import derive_crds
from compute_management_operator import planes
from compute_operator_kit.core.keys import Kind
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject as Manifest

KNOWN_KINDS: Final = tuple(kind for kind in vars(planes).values() if isinstance(kind, Kind))
# Kinds that no test creates, by their resources.
OTHER_KINDS: Final = {
    "subjectaccessreviews": "SubjectAccessReview",
    "leases": "Lease",
    "events": "Event",
    "customresourcedefinitions": "CustomResourceDefinition",
}


def definitions(*names: str) -> list[Manifest]:
    """CRDs of our own kinds, and of neighbours with a group among the names."""
    return neighbours("compute.datumapis.com", *names)


def neighbours(*names: str) -> list[Manifest]:
    return [
        crd for crd in _all_definitions() if any(name in str(crd["metadata"]) for name in names)
    ]


@cache
def _all_definitions() -> tuple[Manifest, ...]:
    """Read once, and not to be changed: parsing them takes longer than most scenarios."""
    return (*(orjson.loads(orjson.dumps(crd)) for crd in derive_crds()), *load_crds())
