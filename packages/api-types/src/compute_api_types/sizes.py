"""The catalogue of instance types: CPU and memory of each, for claims and for Pods.

One table for the quota of an Instance and for the limits of its containers: with two, an Instance
could run with more than its claim requests. Whole millicores and mebibytes, the units of claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from compute_api_types import labels


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one Instance."""

    millicores: int
    mebibytes: int

    @property
    def requests(self) -> Mapping[str, int]:
        """The requests of its claim; the Instance itself counts as one."""
        return MappingProxyType(
            {
                labels.INSTANCES_RESOURCE: 1,
                labels.VCPUS_RESOURCE: self.millicores,
                labels.MEMORY_RESOURCE: self.mebibytes,
            }
        )


CATALOGUE: Final[Mapping[str, Size]] = MappingProxyType(
    {"datumcloud/d1-standard-2": Size(1000, 2048)}
)
"""Sizes by instance type."""

INSTANCE_TYPES: Final = tuple(CATALOGUE)
"""The names that admission accepts (api.md 12, rule 23)."""
