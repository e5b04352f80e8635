"""What can be wrong with a kustomization."""

from __future__ import annotations


class KustomizationError(Exception):
    """A kustomization that cannot be rendered; the message names the file and what is wrong."""
