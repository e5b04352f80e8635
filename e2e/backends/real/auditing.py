"""Reads the audit logs of real API servers: every request, by user and plane.

Operators are recognised by identity, users of a scenario by user agent, others by program name. Dry
runs are left out: they change nothing, and the gateway sends one for every claim.
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
from e2e.harness.planes.identities import CELL_AT_HOME, PROVIDER_AT_HOME
from e2e.harness.planes.identities import MANAGEMENT as MANAGEMENT_IDENTITY
from e2e.world.objects import (
    name_of,
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
    version_of,
)
from e2e.world.port import MANAGEMENT, AuditedRequest, name_provider

USER_AGENT_PREFIX: Final = "scenario/"
CELL_PREFIX: Final = "compute:cell:"
# Metadata for all requests; for writes of operators the response too, because O7 needs the
# resourceVersion that a write produced.
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
    """The audit policy of a stack that runs scenarios."""
    at_home = (MANAGEMENT_IDENTITY, CELL_AT_HOME, PROVIDER_AT_HOME)
    users = [*(one.user for one in at_home), *(f"{CELL_PREFIX}{one}" for one in cells)]
    return _WHOLE.replace("USERS", ", ".join(f'"{user}"' for user in users))


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request, with the resourceVersion it produced if the log has the response."""

    audited: AuditedRequest
    identity: str
    revision: int
    # A create in a terminating namespace is answered 403, like a missing right.
    is_namespace_terminating: bool = False


class AuditLogs:
    """The audit logs in a folder, read while they grow; a new plane adds its own file."""

    def __init__(self, folder: Path, cells: frozenset[str]) -> None:
        self._folder = folder
        self._cells = cells
        self._offsets: dict[Path, int] = {}
        self._entries: list[AuditEntry] = []
        self._lock = threading.Lock()

    def read(self) -> list[AuditEntry]:
        """All requests so far, by the time at which the plane received them."""
        with self._lock:
            grown = False
            for path in sorted(self._folder.glob("*.log")):
                for line in self._new_lines(path):
                    parsed = self._parse(path.stem, line)
                    if parsed is not None:
                        self._entries.append(parsed)
                        grown = True
            if grown:
                self._entries.sort(key=lambda entry: entry.audited.at)
            return list(self._entries)

    def _new_lines(self, path: Path) -> Iterator[bytes]:
        with path.open("rb") as log:
            log.seek(self._offsets.get(path, 0))
            for line in log:
                if not line.endswith(b"\n"):
                    return  # the line is not complete yet
                self._offsets[path] = self._offsets.get(path, 0) + len(line)
                yield line

    def _parse(self, plane: str, line: bytes) -> AuditEntry | None:
        event: JsonValue = orjson.loads(line)
        reference = object_at(event, "objectRef")
        if not isinstance(event, dict) or "dryRun=" in text_at(event, "requestURI"):
            return None
        # A watch is logged at its start and at its end; a 401 only at its start.
        is_logged_at_start = (
            text_at(event, "verb") == "watch"
            or number_at(event, "responseStatus", "code") == HTTPStatus.UNAUTHORIZED
        )
        if (text_at(event, "stage") == "ResponseStarted") != is_logged_at_start:
            return None
        # The root answers for a deleted project and names it as parent.
        meant = texts_at(event, "user", "extra", "iam.miloapis.com/parent-name")
        plane = meant[0] if meant else plane
        user = text_at(event, "user", "username")
        acting = text_at(event, "impersonatedUser", "username") or user
        agent = text_at(event, "userAgent")
        made = object_at(event, "responseObject")
        is_namespace = text_at(reference, "resource") == "namespaces"
        audited = AuditedRequest(
            at=datetime.fromisoformat(text_at(event, "requestReceivedTimestamp")),
            user=self._short_name(plane, acting, agent),
            agent=agent,
            plane=plane,
            verb=text_at(event, "verb"),
            group=text_at(reference, "apiGroup"),
            resource=text_at(reference, "resource") or text_at(event, "requestURI"),
            subresource=text_at(reference, "subresource"),
            # The authorizer sets the namespace of a Namespace request to its own name.
            namespace="" if is_namespace else text_at(reference, "namespace"),
            name=text_at(reference, "name") or name_of(made),
            status=number_at(event, "responseStatus", "code"),
        )
        causes = objects_at(event, "responseStatus", "details", "causes")
        is_terminating = any(text_at(cause, "reason") == "NamespaceTerminating" for cause in causes)
        return AuditEntry(audited, acting, int(version_of(made) or 0), is_terminating)

    def _short_name(self, plane: str, user: str, agent: str) -> str:
        if agent.startswith(USER_AGENT_PREFIX):
            return agent.removeprefix(USER_AGENT_PREFIX)
        if user == MANAGEMENT_IDENTITY.user:
            return MANAGEMENT
        if user == CELL_AT_HOME.user:
            return plane
        if user == PROVIDER_AT_HOME.user:
            return name_provider(plane)
        if user.startswith(CELL_PREFIX) and user.removeprefix(CELL_PREFIX) in self._cells:
            return user.removeprefix(CELL_PREFIX)
        is_user = ":" in user and not user.startswith("system:")
        return user if is_user else agent.partition("/")[0] or user
