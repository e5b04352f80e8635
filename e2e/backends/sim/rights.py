"""Identities of operators and users on simulated planes, and the requests refused to operators.

Operators have exactly the identities of `docs/spec/operations.md` 5, so a right missing in the
shipped roles fails the run. `e2e/harness/deploy/rights.py` reports which rights were used.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import orjson

from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.authz.identity import MASTERS, User, authenticated
from compute_sim_planes.history import Commit, History, Request
from e2e.harness.deploy.rights import CELL_USER, MANAGEMENT_USER
from e2e.harness.deploy.shipped import manifests
from e2e.world.objects import condition_of, object_at, objects_at, text_at
from e2e.world.port import MANAGEMENT

WRITES: Final = frozenset({"create", "update", "patch"})
CACHE_LAG: Final = timedelta(seconds=5)


def user_of(operator: str, plane: str) -> User:
    """An operator's identity: one for management; a cell is its ServiceAccount at home and
    `compute:cell:…` elsewhere.
    """
    if operator == MANAGEMENT:
        return authenticated(MANAGEMENT_USER)
    return authenticated(CELL_USER if plane == operator else f"compute:cell:{operator}")


def user_named(user: str) -> User:
    """The identity of a user. A name with a colon has only the rights bound to it; other users may
    do everything, since IAM inside a project belongs to Milo and is not simulated.
    """
    return authenticated(user) if ":" in user else authenticated(user, MASTERS)


def refusals(history: History, cells: Iterable[str]) -> list[Request]:
    """Requests of operators that were answered 403; there must be none.

    A create in a terminating namespace is answered 403 too and is not counted, nor is a write into
    a suspended project.
    """
    known, terminating = {MANAGEMENT, *cells}, set[tuple[str, str]]()
    suspended: dict[str, datetime | None] = {}
    refused: list[Request] = []
    for entry in history.entries:
        if isinstance(entry, Commit) and entry.kind == "Namespace":
            _note_namespace(entry, terminating)
        elif isinstance(entry, Commit) and entry.kind == "Project":
            _note_project(entry, suspended)
        elif isinstance(entry, Request) and entry.status == 403:
            address = entry.address
            is_late = (address.plane, address.namespace) in terminating
            is_expected = address.verb == "create" and is_late
            is_expected |= _is_suspended(entry, suspended)
            if entry.caller.identity in known and not is_expected:
                refused.append(entry)
    return refused


def _note_project(commit: Commit, suspended: dict[str, datetime | None]) -> None:
    """Keeps each Project that was suspended, with the time of its resume."""
    after: JsonObject = orjson.loads(commit.after) if commit.after else {}
    if condition_of(after, "Suspended").status == "True":
        suspended[commit.key] = None
    elif suspended.get(commit.key, commit.at) is None:
        suspended[commit.key] = commit.at


def _is_suspended(request: Request, suspended: dict[str, datetime | None]) -> bool:
    """Milo refuses by a cache, which may be a moment behind the Project."""
    if request.address.verb not in WRITES or request.address.plane not in suspended:
        return False
    resumed = suspended[request.address.plane]
    return resumed is None or request.begun - resumed < CACHE_LAG


def _note_namespace(commit: Commit, terminating: set[tuple[str, str]]) -> None:
    place = (commit.plane, commit.key)
    after: JsonObject = orjson.loads(commit.after) if commit.after else {}
    if text_at(after, "metadata", "deletionTimestamp"):
        terminating.add(place)
    else:
        terminating.discard(place)


def describe_webhook() -> str:
    """The URL of the admission webhook in the shipped configuration."""
    for one in manifests("milo"):
        if text_at(one, "kind") == "ValidatingWebhookConfiguration":
            service = object_at(objects_at(one, "webhooks")[0], "clientConfig", "service")
            host = f"{text_at(service, 'name')}.{text_at(service, 'namespace')}.svc"
            return f"https://{host}:{service.get('port', 443)}{text_at(service, 'path')}"
    raise LookupError("reading deploy/milo: no ValidatingWebhookConfiguration")
