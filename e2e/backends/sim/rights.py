"""Who everybody is to each simulated plane, and what planes forbade operators.

Operators are nobody but the identities of `docs/spec/operations.md` 5: what their roles do not
grant is refused. What of their rights was used is for `e2e/backends/rights.py` to say.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.identity import MASTERS, User, authenticated
from compute_sim_planes.history import Commit, History, Request
from e2e.backends.port import MANAGEMENT
from e2e.backends.rights import CELL_USER, MANAGEMENT_USER
from e2e.backends.shipped import manifests
from e2e.objects import object_at, objects_at, text_at


def user_of(operator: str, plane: str) -> User:
    """An operator's identity: management has one, a cell is itself at home and `compute:cell:…`
    elsewhere.
    """
    if operator == MANAGEMENT:
        return authenticated(MANAGEMENT_USER)
    return authenticated(CELL_USER if plane == operator else f"compute:cell:{operator}")


def person(who: str) -> User:
    """Somebody who is no operator. Names with a colon are identities and get no more than theirs;
    the others may do everything, since IAM inside a project is Milo's and not played here.
    """
    return authenticated(who) if ":" in who else authenticated(who, MASTERS)


def refusals(history: History, cells: Iterable[str]) -> list[Request]:
    """What planes forbade operators; there must be none.

    A create in a namespace that is terminating is refused with the same code, and needs no right.
    """
    known, terminating = {MANAGEMENT, *cells}, set[tuple[str, str]]()
    found: list[Request] = []
    for entry in history.entries:
        if isinstance(entry, Commit) and entry.kind == "Namespace":
            _note_namespace(entry, terminating)
        elif isinstance(entry, Request) and entry.status == 403:
            address = entry.address
            is_late = (address.plane, address.namespace) in terminating
            if entry.caller.identity in known and not (address.verb == "create" and is_late):
                found.append(entry)
    return found


def _note_namespace(commit: Commit, terminating: set[tuple[str, str]]) -> None:
    place = (commit.plane, commit.key)
    after: JsonObject = orjson.loads(commit.after) if commit.after else {}
    if text_at(after, "metadata", "deletionTimestamp"):
        terminating.add(place)
    else:
        terminating.discard(place)


def describe_webhook() -> str:
    """The address at which the shipped configuration has planes ask for admission."""
    for one in manifests("milo"):
        if text_at(one, "kind") == "ValidatingWebhookConfiguration":
            service = object_at(objects_at(one, "webhooks")[0], "clientConfig", "service")
            host = f"{text_at(service, 'name')}.{text_at(service, 'namespace')}.svc"
            return f"https://{host}:{service.get('port', 443)}{text_at(service, 'path')}"
    raise LookupError("reading deploy/milo: no ValidatingWebhookConfiguration")
