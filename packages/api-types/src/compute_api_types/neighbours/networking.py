"""NSO's kinds: where a city is, and whether a network is ready there (`docs/spec/neighbours.md` 3).

References to a Location are `{name}` from v0.26 on. A `namespace`, which older versions keep, is
not read: its presence is never a difference.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias

from compute_api_types.labels import TOPOLOGY_CITY_CODE
from compute_api_types.meta import ObjectMeta, Resource
from compute_api_types.model import Model
from compute_api_types.neighbours.foreign import ForeignStatus
from compute_api_types.scalars import ReadOnlyMap

_GROUP: Final = "networking.datumapis.com"
_VERSION: Final = "v1alpha"
_API_VERSION: Final = "networking.datumapis.com/v1alpha"

_ApiVersion: TypeAlias = Literal["networking.datumapis.com/v1alpha"]


class NamespacedRef(Model):
    """An object by name, in the namespace of the referring object unless stated."""

    name: str
    namespace: str | None = None


class NamedRef(Model):
    """An object by name: cluster-scoped, or in the same namespace."""

    name: str


class LocationSpec(Model):
    """Where a Location is."""

    topology: ReadOnlyMap[str] | None = None


class Location(Model):
    """A place that serves a city."""

    api_version: _ApiVersion = _API_VERSION
    kind: Literal["Location"] = "Location"
    metadata: ObjectMeta
    spec: LocationSpec | None = None

    RESOURCE: ClassVar = Resource(_GROUP, _VERSION, "Location", "locations", namespaced=False)

    @property
    def city_code(self) -> str | None:
        """The city it serves, compared exactly; None for one that names none."""
        topology = self.spec.topology if self.spec else None
        return topology.get(TOPOLOGY_CITY_CODE) if topology else None


class Network(Model):
    """A network of a project; for us it only has to exist."""

    api_version: _ApiVersion = _API_VERSION
    kind: Literal["Network"] = "Network"
    metadata: ObjectMeta
    status: ForeignStatus | None = None

    RESOURCE: ClassVar = Resource(_GROUP, _VERSION, "Network", "networks")


class NetworkBindingSpec(Model):
    """A network that is wanted in a location."""

    network: NamespacedRef
    location: NamedRef


class NetworkBindingStatus(ForeignStatus):
    """Whether the network is there, and in which context."""

    network_context_ref: NamespacedRef | None = None


class NetworkBinding(Model):
    """Asks for a network in a location; the cell makes one per interface of a deployment."""

    api_version: _ApiVersion = _API_VERSION
    kind: Literal["NetworkBinding"] = "NetworkBinding"
    metadata: ObjectMeta
    spec: NetworkBindingSpec | None = None
    status: NetworkBindingStatus | None = None

    RESOURCE: ClassVar = Resource(_GROUP, _VERSION, "NetworkBinding", "networkbindings")


class NetworkContext(Model):
    """One network in one location."""

    api_version: _ApiVersion = _API_VERSION
    kind: Literal["NetworkContext"] = "NetworkContext"
    metadata: ObjectMeta
    status: ForeignStatus | None = None

    RESOURCE: ClassVar = Resource(_GROUP, _VERSION, "NetworkContext", "networkcontexts")


class SubnetClaimSpec(Model):
    """A subnet that is wanted in a network context."""

    subnet_class: str
    network_context: NamedRef
    location: NamedRef
    ip_family: str


class SubnetClaimStatus(ForeignStatus):
    """Whether the subnet is there, and which it is."""

    subnet_ref: NamedRef | None = None


class SubnetClaim(Model):
    """Asks for a subnet in a network context."""

    api_version: _ApiVersion = _API_VERSION
    kind: Literal["SubnetClaim"] = "SubnetClaim"
    metadata: ObjectMeta
    spec: SubnetClaimSpec | None = None
    status: SubnetClaimStatus | None = None

    RESOURCE: ClassVar = Resource(_GROUP, _VERSION, "SubnetClaim", "subnetclaims")


class Subnet(Model):
    """A subnet; for us it only has to be ready."""

    api_version: _ApiVersion = _API_VERSION
    kind: Literal["Subnet"] = "Subnet"
    metadata: ObjectMeta
    status: ForeignStatus | None = None

    RESOURCE: ClassVar = Resource(_GROUP, _VERSION, "Subnet", "subnets")
