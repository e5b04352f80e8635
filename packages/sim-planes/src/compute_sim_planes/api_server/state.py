"""The state of a plane that handlers and controllers share.

One value without behaviour, filled by `plane`; handlers are functions over it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol, TypeAlias

from compute_sim_planes.api_server.admission.chain import AdmissionChain
from compute_sim_planes.api_server.authz.authorizer import Authorizer
from compute_sim_planes.api_server.authz.identity import Tokens
from compute_sim_planes.api_server.documents import DocumentCache
from compute_sim_planes.api_server.kinds.catalog import Catalog
from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.time.sources import Clock, Identities

MEBIBYTE: Final = 1024 * 1024

# A mutating webhook as a function: the stored object (None: new) and the desired one in, the
# mutated one out. It must not change its arguments and returns the same value when there is nothing
# to do.
Amendment: TypeAlias = "Callable[[JsonObject | None, JsonObject], JsonObject]"


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes and times of a real server; a test may reduce them."""

    # kube-apiserver refuses bodies above 3 MiB unread; etcd accepts 1.5 MiB per object.
    body_bytes: int = 3 * MEBIBYTE
    object_bytes: int = 3 * MEBIBYTE // 2
    bookmark_every: timedelta = timedelta(minutes=1)
    # --min-request-timeout is half an hour; a watch without a timeout lasts one to two times that.
    watch_timeout: timedelta = timedelta(minutes=45)
    # How long a read waits for a resourceVersion that the plane has not reached.
    version_wait: timedelta = timedelta(seconds=3)
    # The reaction time of the garbage collector, namespace and CRD controllers.
    controller_delay: timedelta = timedelta(milliseconds=20)


class Stream(Protocol):
    """An open watch."""

    @property
    def kind(self) -> Kind: ...

    def end(self) -> None: ...


@dataclass(slots=True)
class PlaneState:
    """The parts of one plane."""

    name: str
    clock: Clock
    identities: Identities
    store: Store
    catalog: Catalog
    tokens: Tokens
    admission: AdmissionChain
    limits: Limits
    version: str
    authorizer: Authorizer
    amendments: Mapping[GroupResource, Amendment] = field(
        default_factory=dict[GroupResource, Amendment]
    )
    # A dict for its order: streams end in the order in which they were opened.
    streams: dict[Stream, None] = field(default_factory=dict)
    documents: DocumentCache = field(default_factory=DocumentCache)
