"""Builds histories by hand for tests of oracles."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from compute_api_types.wire import JsonObject, JsonValue
from compute_sim_planes.history import Caller, Commit, History, Request
from compute_sim_planes.request_address import Address

START: Final = datetime(2026, 3, 1, tzinfo=UTC)


class ManualClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.passed = timedelta()

    def now(self) -> datetime:
        return START + self.passed


@dataclass(slots=True)
class HistoryBuilder:
    """A history built step by step."""

    clock: ManualClock = field(default_factory=ManualClock)
    stored: dict[tuple[str, str, str], bytes] = field(
        default_factory=dict[tuple[str, str, str], bytes]
    )
    number: int = 0

    def __post_init__(self) -> None:
        self.history = History(self.clock)

    history: History = field(init=False)

    def wait(self, seconds: float) -> None:
        self.clock.passed += timedelta(seconds=seconds)

    def fault(self, fault_id: str = "A1") -> None:
        self.history.add_injected(fault_id, "somewhere")

    def write(
        self,
        user: str,
        plane: str,
        document: JsonObject,
        *,
        verb: str = "patch",
        resource: str = "",
    ) -> None:
        """A write of a whole object; `user` is empty for a write of the plane itself."""
        self._commit(user, plane, document, orjson.dumps(document), verb, resource)

    def remove(self, user: str, plane: str, document: JsonObject) -> None:
        self._commit(user, plane, document, b"", "delete", "")

    def ask(self, user: str, plane: str, verb: str, resource: str, key: str = "") -> None:
        """A request that changes nothing."""
        namespace, _, name = key.rpartition("/")
        self.number += 1
        address = Address(plane, verb, "compute.datumapis.com", resource, "", namespace, name)
        now = self.clock.now()
        self.history.entries.append(
            Request(self.number, now, now, Caller(user), address, 200, "", ())
        )

    def _commit(
        self,
        user: str,
        plane: str,
        document: JsonObject,
        after: bytes,
        verb: str,
        resource: str,
    ) -> None:
        metadata = document["metadata"]
        if not isinstance(metadata, dict):
            raise TypeError("telling a history: an object has metadata")
        kind, name = str(document["kind"]), str(metadata["name"])
        key = f"{metadata['namespace']}/{name}" if "namespace" in metadata else name
        before = self.stored.get((plane, kind, key), b"")
        change = "DELETED" if not after else "MODIFIED" if before else "ADDED"
        self.number += 1
        now = self.clock.now()
        commit = Commit(
            now, plane, change, kind, key, self.number, user, before, after,
            self.number if user else None,
        )  # fmt: skip
        if after:
            self.stored[plane, kind, key] = after
        else:
            self.stored.pop((plane, kind, key), None)
        self.history.entries.append(commit)
        if user:
            address = Address(
                plane, verb, "", resource or f"{kind.lower()}s", kind, str(key.rpartition("/")[0]),
                name,
            )  # fmt: skip
            request = Request(self.number, now, now, Caller(user), address, 200, "", (commit,))
            self.history.entries.append(request)


def an_object(kind: str, key: str, uid: str = "", **members: JsonValue) -> JsonObject:
    """A document: `an_object("Instance", "ns/web-0", spec={…})`; `metadata` is merged over
    defaults.
    """
    namespace, _, name = key.rpartition("/")
    metadata: JsonObject = {"name": name, "uid": uid or f"uid-of-{name}", "generation": 1}
    if namespace:
        metadata["namespace"] = namespace
    more = members.pop("metadata", {})
    if not isinstance(more, dict):
        raise TypeError("telling a history: metadata is an object")
    return {"apiVersion": "v1", "kind": kind, "metadata": {**metadata, **more}, **members}
