"""Opens the client of the quota server, so that nobody else has to know the library."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from compute_api_types import labels
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.configuration import ConfigurationError
from compute_operator_kit.strict_yaml import Problem
from compute_quota_client import (
    QuotaAuthError,
    QuotaClient,
    QuotaSettings,
    QuotaUsageError,
    Surroundings,
)

PATH_FIELD: Final = "quota.kubeconfigPath"


def open_client(
    settings: CellSettings, user_agent: str, clock: Clock, random: Random
) -> QuotaClient:
    """The client of the server that the settings name; its files are read now, nothing is sent.

    Raises:
        ConfigurationError: the kubeconfig is refused, or a file cannot be read.
    """
    try:
        return QuotaClient.from_kubeconfig(
            Path(settings.quota.kubeconfig_path),
            settings=QuotaSettings(
                user_agent=user_agent,
                field_manager=labels.QUOTA_MANAGER,
                http="aiohttp",  # it is here already, and a claim per Instance is many
                allow_exec=settings.clients.allow_exec,
            ),
            surroundings=Surroundings(chance=random.random, wall_clock=clock.now),
        )
    except (QuotaAuthError, QuotaUsageError) as refused:
        raise ConfigurationError([Problem(PATH_FIELD, str(refused))]) from refused
