"""Who this operator is to each of its planes, by the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import Places
from compute_operator_kit.clock import Clock
from compute_operator_kit.connector import load_home
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.keys import Role


@dataclass(frozen=True, slots=True)
class Identities:
    """Who we are to each plane; None where the settings have no such plane."""

    home: FileCredentials
    hub: FileCredentials | None = None

    def to(self, role: Role) -> FileCredentials:
        return self.hub if role is Role.HUB and self.hub is not None else self.home

    def places(self) -> Places:
        hub = self.to(Role.HUB)
        return Places(self.home.server, hub.server, self.home, hub)


def load_identities(settings: CellSettings, environ: Mapping[str, str], clock: Clock) -> Identities:
    """Every credential the settings name, read once; `ConfigurationError` when one is refused."""
    found, allow_exec = settings.federation, settings.clients.allow_exec
    hub = None
    if found.kubeconfig_path:
        hub = FileCredentials.from_kubeconfig(
            Path(found.kubeconfig_path), clock=clock, context=found.context, allow_exec=allow_exec
        )
    return Identities(load_home(environ, clock, allow_exec=allow_exec), hub)
