"""An authorized request to a served kind, and its query options.

Options are parsed strictly, as in a real server: an unknown value is refused before the request has
any effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.http.request_info import ResourcePath
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.api_server.schema import field_problems
from compute_sim_planes.api_server.state import PlaneState
from compute_sim_planes.json_types import JsonObject

_LONGEST_MANAGER: Final = 128


@dataclass(slots=True)
class ApiRequest:
    """A request to a served kind, after authorization."""

    state: PlaneState
    user: User
    kind: Kind
    path: ResourcePath
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    warnings: list[str] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        """The object's namespace; empty for cluster-scoped kinds, also for a Namespace itself."""
        return self.path.namespace if self.kind.namespaced else ""

    @property
    def name(self) -> str:
        return self.path.name

    def flag(self, name: str) -> bool:
        """A boolean query option."""
        return is_true(self.query.get(name))

    def whole_number(self, name: str) -> int | None:
        value = self.query.get(name)
        if value is None or value == "":
            return None
        try:
            return int(value)
        except ValueError as error:
            message = f'strconv.ParseInt: parsing "{value}": invalid syntax'
            raise api_errors.bad_request(message) from error

    @property
    def field_manager(self) -> str:
        """The field manager of a write: the query option, or the first word of the user agent."""
        manager = self.query.get("fieldManager")
        if manager:
            return manager
        return self.headers.get("user-agent", "").partition("/")[0][:_LONGEST_MANAGER] or "unknown"


def is_true(value: str | None) -> bool:
    """A boolean query value as Go converts it: true unless absent, false or 0."""
    return value is not None and value.lower() not in {"false", "0"}


def parse_query(text: str) -> dict[str, str]:
    """Query options by name; of a repeated one the first counts, as in Go."""
    if not text:
        return {}
    options: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        options.setdefault(name, value)
    return options


def is_dry_run(dry_run: str | None, options_kind: str) -> bool:
    """Whether a write is a dry run; `All` is the only valid value."""
    if not dry_run:
        return False
    if dry_run != "All":
        problem = field_problems.not_supported("dryRun", [dry_run], ["All"])
        raise api_errors.invalid_options(options_kind, [problem])
    return True


_FIELD_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")


def check_options(call: ApiRequest, options_kind: str) -> None:
    """Refuse invalid query options of a write."""
    problems = [*_manager_problems(call.query.get("fieldManager", ""))]
    validation = call.query.get("fieldValidation", "")
    if validation not in _FIELD_VALIDATIONS:
        problems.append(
            field_problems.not_supported("fieldValidation", validation, [*_FIELD_VALIDATIONS])
        )
    if problems:
        raise api_errors.invalid_options(options_kind, problems)


def _manager_problems(manager: str) -> Iterator[field_problems.FieldProblem]:
    if len(manager.encode()) > _LONGEST_MANAGER:
        yield field_problems.too_long("fieldManager", _LONGEST_MANAGER)
    for at, sign in enumerate(manager):
        if not sign.isprintable():
            detail = f"invalid character U+{ord(sign):04X} (at position {at})"
            yield field_problems.invalid("fieldManager", manager, detail)


def dry_run_of(options: JsonObject, query: Mapping[str, str]) -> str | None:
    """The dry-run value of a delete: from its body if it has one, else from the query."""
    listed = options.get("dryRun")
    if isinstance(listed, list) and listed and isinstance(listed[0], str):
        return listed[0]
    return None if options else query.get("dryRun")
