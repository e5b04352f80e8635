"""The interface of a Karmada under contract tests: a hub and two members, by their addresses.

Implemented by the simulation and by real planes. Besides addresses it has the three operations that
a client of an API server cannot do.
"""

from __future__ import annotations

from typing import Protocol

from compute_sim_planes.api_server.testing import ServerAddress

MEMBERS = ("dfw-1", "ord-1")


class KarmadaStack(Protocol):
    """A hub with Karmada at the rates of `docs/spec/neighbours.md` 4.3; members joined and Ready.

    The kind of the tests (`documents.GADGETS`) is on all three before Karmada starts. The tokens
    are an administrator's. `apiEndpoint` of a member's Cluster is its address here.
    """

    @property
    def hub(self) -> ServerAddress: ...

    def member(self, name: str) -> ServerAddress: ...

    async def issue_token(self, member: str) -> str:
        """Issue another administrator's token for a member."""
        ...

    async def revoke_token(self, member: str, token: str) -> None:
        """Revoke an issued token, and close the connections opened with it."""
        ...

    async def restart_karmada(self) -> None:
        """Restart the controllers; returns when they work."""
        ...
