"""The network interfaces of an instance (`docs/spec/api.md` 2.1). Schema only; policies are handed
on unread.
"""

from __future__ import annotations

from pydantic import Field

from compute_api_types.model import Model
from compute_api_types.scalars import AtomicList, Int32, IntOrString, PlainList


class NetworkReference(Model):
    """A Network of networking.datumapis.com."""

    name: str = Field(description="The Network.")
    namespace: str | None = Field(
        default=None, description="Its namespace; only the Workload's own is allowed."
    )


class IPBlock(Model):
    """A range of addresses."""

    cidr: str = Field(description="The range, such as 198.51.100.0/24.")
    except_: AtomicList[str] | None = Field(
        default=None,
        validation_alias="except",
        serialization_alias="except",
        description="Ranges inside it that are left out.",
    )


class NetworkPolicyPeer(Model):
    """Who may connect."""

    ip_block: IPBlock | None = Field(default=None, description="A range of addresses.")


class NetworkPolicyPort(Model):
    """What may be connected to."""

    port: IntOrString | None = Field(default=None, description="A port by number or by name.")
    end_port: Int32 | None = Field(default=None, description="The last port of a range.")
    protocol: str | None = Field(default=None, description="The protocol.")


class NetworkPolicyIngressRule(Model):
    """Who may connect to what."""

    from_: AtomicList[NetworkPolicyPeer] | None = Field(
        default=None,
        validation_alias="from",
        serialization_alias="from",
        description="Who may connect, any of these; empty means everybody.",
    )
    ports: AtomicList[NetworkPolicyPort] | None = Field(
        default=None, description="To what, any of these; empty means everything."
    )


class NetworkPolicy(Model):
    """The policy of lowest priority on one interface."""

    ingress: PlainList[NetworkPolicyIngressRule] | None = Field(
        default=None, description="Who may connect to what."
    )


class NetworkInterface(Model):
    """One interface of an instance."""

    network: NetworkReference = Field(description="The Network it is attached to.")
    network_policy: NetworkPolicy | None = Field(
        default=None, description="The policy of lowest priority on it."
    )
