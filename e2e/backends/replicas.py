"""The protocol of an operator's replicas, for backends that run them as processes or as pods.

`RealEnvironment` and the schedulers use only this protocol, so they are the same for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from compute_api_types.wire import JsonObject


class OperatorReplicas(Protocol):
    """All replicas of one operator."""

    @property
    def arrangement(self) -> tuple[int, JsonObject]:
        """Number of replicas, and the settings merged over their configuration."""
        ...

    @property
    def deaths(self) -> Sequence[str]:
        """Exits that no scenario caused."""
        ...

    @property
    def logs(self) -> Sequence[Path]: ...

    @property
    def pids(self) -> Sequence[int]:
        """Process ids of the replicas on this machine."""
        ...

    async def start(self, replicas: int = 1, overrides: JsonObject | None = None) -> None:
        """Starts the replicas and waits until each is ready."""
        ...

    async def stop(self) -> None:
        """Sends SIGTERM and waits until they have ended."""
        ...

    async def kill(self) -> None:
        """Sends SIGKILL; the replicas are not restarted."""
        ...

    async def freeze_leader(self) -> None: ...

    def thaw(self) -> None: ...

    def expect_restarts(self) -> None:
        """Accepts all exits so far, so that `deaths` does not report them again."""
        ...

    def metric(self, name: str, labels: Mapping[str, str]) -> float:
        """The sum over replicas of the series with these labels; histograms count observations."""
        ...
