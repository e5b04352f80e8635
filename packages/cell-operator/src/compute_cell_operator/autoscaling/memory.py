"""Memory of the autoscaling controller: why a deployment has no working autoscaler.

The conditions are written by the deployment controller, in its one status write. Until a deployment
had its first pass here, nothing is known, and its stored conditions stand: a new process must not
write them anew for every deployment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compute_operator_kit.core.keys import ObjectKey, Uid


@dataclass(frozen=True, slots=True)
class AutoscalerPass:
    """How the last pass over a deployment ended."""

    uid: Uid
    failure: str = ""  # "": its autoscaler is as it is to be


class AutoscalingMemory:
    """The last pass of each autoscaled deployment; `on_change` is called with keys that changed."""

    def __init__(self) -> None:
        self._passes: dict[ObjectKey, AutoscalerPass] = {}
        self._listeners: list[Callable[[ObjectKey], None]] = []

    def add_listener(self, listener: Callable[[ObjectKey], None]) -> None:
        self._listeners.append(listener)

    def find(self, key: ObjectKey, uid: Uid) -> AutoscalerPass | None:
        last = self._passes.get(key)
        return last if last is not None and last.uid == uid else None

    def note(self, key: ObjectKey, last: AutoscalerPass) -> None:
        if self._passes.get(key) == last:
            return
        self._passes[key] = last
        for listener in self._listeners:
            listener(key)

    def forget(self, key: ObjectKey) -> None:
        """The deployment is gone, or not autoscaled any more."""
        self._passes.pop(key, None)

    def __len__(self) -> int:
        return len(self._passes)
