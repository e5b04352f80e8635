"""What a stage asks of an operator's replicas, whether they are processes or pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from compute_api_types.wire import JsonObject


class OperatorCrew(Protocol):
    """All replicas of one operator."""

    @property
    def arrangement(self) -> tuple[int, JsonObject]:
        """How many run, and what is laid over their configuration."""
        ...

    @property
    def deaths(self) -> Sequence[str]:
        """Ends that nobody asked for."""
        ...

    @property
    def logs(self) -> Sequence[Path]: ...

    @property
    def pids(self) -> Sequence[int]:
        """The replicas' processes, as the machine counts."""
        ...

    async def start(self, replicas: int = 1, laid: JsonObject | None = None) -> None:
        """Starts them and waits until each is ready."""
        ...

    async def stop(self) -> None:
        """As on SIGTERM; returns when they have ended."""
        ...

    async def kill(self) -> None:
        """As on SIGKILL; they stay down."""
        ...

    async def freeze_leader(self) -> None: ...

    def thaw(self) -> None: ...

    def forgive(self) -> None:
        """What ended until now has been judged, or was meant to end."""
        ...

    def metric(self, name: str, labels: Mapping[str, str]) -> float:
        """The sum over replicas of the series with these labels; histograms count observations."""
        ...
