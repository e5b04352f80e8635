"""What a plane is made of, as its handlers and controllers see it.

One value that wiring fills once; handlers are plain functions over it. It holds parts, not
behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol, TypeAlias

from compute_sim_planes.api_server.admission import Admission
from compute_sim_planes.api_server.authorization import Authorizer
from compute_sim_planes.api_server.catalog import Catalog
from compute_sim_planes.api_server.documents import Documents
from compute_sim_planes.api_server.identity import Tokens
from compute_sim_planes.api_server.kinds import GroupResource, Kind
from compute_sim_planes.api_server.sources import Clock, Identities
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject

MEBIBYTE: Final = 1024 * 1024

# What a plane makes of a wanted object, before (None: new) and wanted in; a mutating webhook in the
# form of a function. It changes neither, and hands on the very same value where it wants nothing.
Amendment: TypeAlias = "Callable[[JsonObject | None, JsonObject], JsonObject]"


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes and times of a real server; a test may shrink them."""

    # kube-apiserver refuses bodies above 3 MiB unread; etcd takes 1.5 MiB per object.
    body_bytes: int = 3 * MEBIBYTE
    object_bytes: int = 3 * MEBIBYTE // 2
    bookmark_every: timedelta = timedelta(minutes=1)
    # --min-request-timeout is half an hour, and a watch without a wish lasts between once and twice
    # that.
    watch_timeout: timedelta = timedelta(minutes=45)
    # How long a read waits for a version the plane has not reached.
    version_wait: timedelta = timedelta(seconds=3)
    # How long the garbage collector, namespaces and CRDs take to notice.
    controller_delay: timedelta = timedelta(milliseconds=20)


class Stream(Protocol):
    """A watch that is under way."""

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
    admission: Admission
    limits: Limits
    version: str
    authorizer: Authorizer
    amendments: Mapping[GroupResource, Amendment] = field(
        default_factory=dict[GroupResource, Amendment]
    )
    # A dict for its order: streams end in the order they began.
    streams: dict[Stream, None] = field(default_factory=dict)
    documents: Documents = field(default_factory=Documents)
