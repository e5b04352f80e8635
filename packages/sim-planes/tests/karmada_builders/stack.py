"""What a Karmada contract runs on: a hub and two members, by their addresses.

The seam between simulation and reality. Whoever offers a stack says where its servers are and does
the three things no client of an API server can do; everything else the tests do over HTTP.
"""

from __future__ import annotations

from typing import Protocol

from compute_sim_planes.api_server.testing import ServerAddress

MEMBERS = ("dfw-1", "ord-1")


class KarmadaStack(Protocol):
    """A hub with Karmada at the rates of `docs/spec/neighbours.md` 4.3; members joined and Ready.

    The kind of the tests (`documents.GADGETS`) is on all three before Karmada starts. Tokens of the
    addresses are an administrator's. `apiEndpoint` of a member's Cluster is its address here.
    """

    @property
    def hub(self) -> ServerAddress: ...

    def member(self, name: str) -> ServerAddress: ...

    async def issue_token(self, member: str) -> str:
        """A further administrator's token for a member."""
        ...

    async def revoke_token(self, member: str, token: str) -> None:
        """An issued token is worth nothing any more, and what was opened with it ends."""
        ...

    async def restart_karmada(self) -> None:
        """Ends the controllers and starts them anew; back when they work."""
        ...
