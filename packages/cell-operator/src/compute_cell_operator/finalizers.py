"""Unknown finalizers of terminating objects, described for conditions and events. Pure.

An object with a finalizer that no component of the platform sets may terminate for ever; its owner
learns the cause only from a condition that names the finalizer (operations.md OU-04).
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_operator_kit.core.objects import Metadata

KNOWN: Final = frozenset(
    {
        labels.FEDERATION_FINALIZER,  # on a project's own deployments, without a federation
        *labels.RETIRED_DEPLOYMENT_FINALIZERS,
        *labels.RETIRED_INSTANCE_FINALIZERS,
        labels.PROVIDER_FINALIZER,
        labels.POD_PROVIDER_FINALIZER,
        # Of the API server, for the order in which an object and its dependents are deleted.
        "foregroundDeletion",
        "orphan",
    }
)
MOST_NAMED: Final = 3  # a name has up to 316 characters, a message 1024


def describe_hold(metadata: Metadata) -> str:
    """What the deletion of an object waits for; "" without an unknown finalizer.

    Example: `deletion waits for finalizer "example.com/hold"`.
    """
    if not metadata.is_deleting:
        return ""
    unknown = sorted(set(metadata.finalizers) - KNOWN)
    if not unknown:
        return ""
    named = ", ".join(f'"{name}"' for name in unknown[:MOST_NAMED])
    more = len(unknown) - MOST_NAMED
    noun = "finalizer" if len(unknown) == 1 else "finalizers"
    return f"deletion waits for {noun} {named}" + (f" and {more} more" if more > 0 else "")
