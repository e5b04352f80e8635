"""Finalizers on deleted objects of the cell that no part of the platform is known to set. Pure.

An object that such a finalizer holds stays for ever, without a word about the reason, unless it is
named where its owner looks (operations.md OU-04).
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_operator_kit.objects import Metadata

KNOWN: Final = frozenset(
    {
        labels.FEDERATION_FINALIZER,  # beside a project's own deployments, without a federation
        *labels.RETIRED_DEPLOYMENT_FINALIZERS,
        *labels.RETIRED_INSTANCE_FINALIZERS,
        labels.PROVIDER_FINALIZER,
        # Of the API server, for the order in which an object and what it owns go.
        "foregroundDeletion",
        "orphan",
    }
)
MOST_NAMED: Final = 3  # a name has up to 316 characters, a message 1024


def describe_hold(metadata: Metadata) -> str:
    """What the deletion of an object waits for; "" where nothing unknown holds it.

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
