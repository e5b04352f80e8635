"""Credentials and Secrets with recognisable canary values for every simulated run (S12).

Simulated planes authenticate by connection, so these tokens grant nothing. `e2e.oracles.leaks`
searches objects, requests and logs for them after the run.
"""

from __future__ import annotations

from collections.abc import Mapping

from compute_kubeconfig.access import Material
from compute_quota_client._credentials import FixedCredentials
from e2e.oracles.leaks import TOKEN


class CanaryCredentials:
    """A bearer token of one operator for one plane."""

    def __init__(self, operator: str, plane: str) -> None:
        self._token = f"{TOKEN}-of-{operator}-for-{plane}"

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    async def refresh(self) -> bool:
        """Always true, so that a request answered 401 is repeated, as with shipped credentials."""
        self._token += "-again"
        return True


def quota_credentials(operator: str) -> FixedCredentials:
    """The same for the quota client, which otherwise reads credentials from files only."""
    return FixedCredentials(Material(token=f"{TOKEN}-of-{operator}-for-quota"))
