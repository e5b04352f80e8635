"""Credentials and Secrets with canaries in them, for every simulated world (S12).

Planes know an operator by its connection, so a token opens nothing here: it is only there to be
kept. `e2e.faults.leaks` looks for it afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

from compute_quota_client._credentials import FixedCredentials
from compute_quota_client._material import Material
from e2e.faults.leaks import TOKEN


class CanaryCredentials:
    """A bearer token of one operator for one plane."""

    def __init__(self, operator: str, plane: str) -> None:
        self._token = f"{TOKEN}-of-{operator}-for-{plane}"

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    async def refresh(self) -> bool:
        """There is a new one whenever somebody asks, so that a 401 is tried again, as it ships."""
        self._token += "-again"
        return True


def quota_credentials(server: str, operator: str) -> FixedCredentials:
    """The same for the quota client, whose makers take a credential from files alone."""
    return FixedCredentials(Material(origin=server, token=f"{TOKEN}-of-{operator}-for-quota"))
