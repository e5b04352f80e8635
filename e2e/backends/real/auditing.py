"""What was asked of real planes, by whom, read from the audit logs of their API servers.

Operators are told by their identities, people of a scenario by their user agent, everybody else by
the name of the program. Rehearsals (`dryRun`) are left out: they change nothing, and the gateway
makes one of every claim.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final

import orjson

from compute_api_types.wire import JsonValue
from e2e.backends.port import MANAGEMENT, Audited
from e2e.objects import (
    name_of,
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
    version_of,
)
from e2e.planes.identities import CELL_AT_HOME
from e2e.planes.identities import MANAGEMENT as MANAGEMENT_IDENTITY

PERSON: Final = "scenario/"
CELL_PREFIX: Final = "compute:cell:"
# Metadata of everything; of what operators write also what came of it, because only that tells
# which version of an object was theirs (O7).
_WHOLE: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*", "/openapi*", "/version"]
- level: RequestResponse
  users: [USERS]
  verbs: [create, update, patch]
  resources:
  - group: compute.datumapis.com
  - group: policy.karmada.io
  - group: quota.miloapis.com
  - group: ""
    resources: [namespaces]
- level: Metadata
"""


def render_policy(cells: list[str]) -> str:
    """The audit policy of a stack on which scenarios run."""
    users = [MANAGEMENT_IDENTITY.user, CELL_AT_HOME.user, *(f"{CELL_PREFIX}{one}" for one in cells)]
    return _WHOLE.replace("USERS", ", ".join(f'"{user}"' for user in users))


@dataclass(frozen=True, slots=True)
class Entry:
    """One request, and which version of the object it made, where that was written down."""

    audited: Audited
    user: str
    revision: int
    # A namespace that is going takes nothing new, and says so with the code of a missing right.
    is_namespace_going: bool = False


class AuditLogs:
    """The logs in a folder, read as they grow; a plane that comes later brings its own file."""

    def __init__(self, folder: Path, cells: frozenset[str]) -> None:
        self._folder = folder
        self._cells = cells
        self._offsets: dict[Path, int] = {}
        self._entries: list[Entry] = []
        self._lock = threading.Lock()

    def read(self) -> list[Entry]:
        """Everything that was asked until now, in the order of the planes' own times."""
        with self._lock:
            grown = False
            for path in sorted(self._folder.glob("*.log")):
                for line in self._new_lines(path):
                    found = self._parse(path.stem, line)
                    if found is not None:
                        self._entries.append(found)
                        grown = True
            if grown:
                self._entries.sort(key=lambda entry: entry.audited.at)
            return list(self._entries)

    def _new_lines(self, path: Path) -> Iterator[bytes]:
        with path.open("rb") as log:
            log.seek(self._offsets.get(path, 0))
            for line in log:
                if not line.endswith(b"\n"):
                    return  # it is being written
                self._offsets[path] = self._offsets.get(path, 0) + len(line)
                yield line

    def _parse(self, plane: str, line: bytes) -> Entry | None:
        event: JsonValue = orjson.loads(line)
        reference = object_at(event, "objectRef")
        if not isinstance(event, dict) or "dryRun=" in text_at(event, "requestURI"):
            return None
        # A watch is told when it begins, and again when it ends; who is not known, only once.
        is_told_at_first = (
            text_at(event, "verb") == "watch"
            or number_at(event, "responseStatus", "code") == HTTPStatus.UNAUTHORIZED
        )
        if (text_at(event, "stage") == "ResponseStarted") != is_told_at_first:
            return None
        # What is asked of a project that is gone is answered by the root, in that project's name.
        meant = texts_at(event, "user", "extra", "iam.miloapis.com/parent-name")
        plane = meant[0] if meant else plane
        user = text_at(event, "user", "username")
        acting = text_at(event, "impersonatedUser", "username") or user
        agent = text_at(event, "userAgent")
        made = object_at(event, "responseObject")
        is_namespace = text_at(reference, "resource") == "namespaces"
        audited = Audited(
            at=datetime.fromisoformat(text_at(event, "requestReceivedTimestamp")),
            who=self._who(plane, acting, agent),
            agent=agent,
            plane=plane,
            verb=text_at(event, "verb"),
            group=text_at(reference, "apiGroup"),
            resource=text_at(reference, "resource") or text_at(event, "requestURI"),
            subresource=text_at(reference, "subresource"),
            # Rights on a namespace are looked up inside it; it is addressed by its name alone.
            namespace="" if is_namespace else text_at(reference, "namespace"),
            name=text_at(reference, "name") or name_of(made),
            status=number_at(event, "responseStatus", "code"),
        )
        causes = objects_at(event, "responseStatus", "details", "causes")
        is_going = any(text_at(cause, "reason") == "NamespaceTerminating" for cause in causes)
        return Entry(audited, acting, int(version_of(made) or 0), is_going)

    def _who(self, plane: str, user: str, agent: str) -> str:
        if agent.startswith(PERSON):
            return agent.removeprefix(PERSON)
        if user == MANAGEMENT_IDENTITY.user:
            return MANAGEMENT
        if user == CELL_AT_HOME.user:
            return plane
        if user.startswith(CELL_PREFIX) and user.removeprefix(CELL_PREFIX) in self._cells:
            return user.removeprefix(CELL_PREFIX)
        is_person = ":" in user and not user.startswith("system:")
        return user if is_person else agent.partition("/")[0] or user
