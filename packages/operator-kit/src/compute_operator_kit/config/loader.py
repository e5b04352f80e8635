"""The settings loader: it reads file, environment and flags, and reports all problems at once.

Precedence is flag, environment, file, default. A refused configuration ends the process with exit
code 2 before anything starts, with one line per problem and the path of its field. No value of the
file is repeated, because it may be a password in the wrong field.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from compute_kubeconfig.problems import ConfigurationError, Problem, format_path
from compute_kubeconfig.strict_yaml import DocumentError, parse_document, read_text
from compute_operator_kit.config.optional_extras import find_missing_exporter
from compute_operator_kit.config.settings import API_VERSION, Root
from compute_operator_kit.core.json import Json, JsonObject

SettingsT = TypeVar("SettingsT", bound=Root)

SERVER_CONFIG_FLAG: Final = "--server-config"
SERVER_CONFIG_VARIABLE: Final = "SERVER_CONFIG"
CHECK_CONFIG: Final = "check-config"
COMPLETION: Final = "completion"
SHELLS: Final = ("bash", "zsh", "fish")
RUN: Final = "run"


def _parse_text(text: str) -> Json:
    return text


def _parse_boolean(text: str) -> Json:
    if text.lower() not in {"true", "false"}:
        raise ValueError("expected true or false")
    return text.lower() == "true"


@dataclass(frozen=True, slots=True)
class Override:
    """A field that an environment variable or a flag may set."""

    path: tuple[str, ...]
    variable: str
    flag: str = ""
    parse: Callable[[str], Json] = _parse_text
    is_switch: bool = False  # the flag without a value means true
    help: str = ""


OVERRIDES: Final = (
    Override(
        ("federation", "kubeconfigPath"),
        "FEDERATION_KUBECONFIG",
        "--federation-kubeconfig",
        help="kubeconfig of the hub",
    ),
    Override(
        ("federation", "context"),
        "FEDERATION_CONTEXT",
        "--federation-context",
        help="context in that kubeconfig",
    ),
    Override(
        ("leaderElection", "enabled"),
        "LEADER_ELECT",
        "--leader-elect",
        _parse_boolean,
        is_switch=True,
        help="write only while holding the Lease",
    ),
    Override(
        ("leaderElection", "namespace"),
        "LEADER_ELECT_NAMESPACE",
        "--leader-elect-namespace",
        help="namespace of the Lease",
    ),
    Override(
        ("health", "bindAddress"),
        "HEALTH_PROBE_BIND_ADDRESS",
        "--health-probe-bind-address",
        help="where /healthz and /readyz listen",
    ),
    Override(
        ("telemetry", "logLevel"), "LOG_LEVEL", "--log-level", help="debug, info, warning or error"
    ),
    Override(("telemetry", "otlpEndpoint"), "OTEL_EXPORTER_OTLP_ENDPOINT"),
)


@dataclass(frozen=True, slots=True)
class Command:
    """The parsed command line and environment, before the file is read."""

    verb: str = RUN
    server_config: str = ""
    given: Mapping[tuple[str, ...], tuple[str, str]] = field(
        default_factory=dict[tuple[str, ...], tuple[str, str]]
    )  # path → text and its source


@dataclass(frozen=True, slots=True)
class Verb:
    """A command of an operator besides `run`."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]


def build_parser(program: str, version: str, verbs: Iterable[Verb] = ()) -> argparse.ArgumentParser:
    """The shared command line with the verbs of an operator; usage errors exit with code 2."""
    shared = _build_shared_flags()
    parser = argparse.ArgumentParser(prog=program, parents=[shared], allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"{program} {version}")
    commands = parser.add_subparsers(dest="verb", metavar="COMMAND")
    commands.add_parser(
        CHECK_CONFIG,
        parents=[shared],
        allow_abbrev=False,
        help="read the configuration, say what is wrong with it or what it enables, start nothing",
    )
    completion = commands.add_parser(
        COMPLETION, allow_abbrev=False, help="print a script that completes this command in a shell"
    )
    completion.add_argument("shell", choices=SHELLS)
    for verb in verbs:
        verb.configure(commands.add_parser(verb.name, allow_abbrev=False, help=verb.help))
    return parser


def _build_shared_flags() -> argparse.ArgumentParser:
    """Flags that may be given before or after the verb; a default of the second parser would
    overwrite a flag of the first, so that defaults are suppressed.
    """
    shared = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add = shared.add_argument
    add(SERVER_CONFIG_FLAG, metavar="FILE", default=argparse.SUPPRESS, help="configuration file")
    for override in OVERRIDES:
        if override.is_switch:
            add(
                override.flag,
                nargs="?",
                const="true",
                metavar="BOOL",
                default=argparse.SUPPRESS,
                help=override.help,
            )
        elif override.flag:
            add(override.flag, metavar="TEXT", default=argparse.SUPPRESS, help=override.help)
    return shared


def read_command(parsed: argparse.Namespace, environ: Mapping[str, str]) -> Command:
    """Flags win over the environment. An empty variable counts as unset, an empty flag as empty."""
    flags: dict[str, str | None] = vars(parsed)
    given: dict[tuple[str, ...], tuple[str, str]] = {}
    for override in OVERRIDES:
        from_flag = flags.get(override.flag.removeprefix("--").replace("-", "_"))
        if override.flag and from_flag is not None:
            given[override.path] = (from_flag, override.flag)
        elif from_environment := environ.get(override.variable, ""):
            given[override.path] = (from_environment, override.variable)
    server_config = flags.get("server_config") or environ.get(SERVER_CONFIG_VARIABLE, "")
    return Command(flags.get("verb") or RUN, server_config, given)


def load_settings(settings: type[SettingsT], command: Command) -> SettingsT:
    """The settings, or `ConfigurationError` with all problems of file, environment and flags."""
    if not command.server_config:
        hint = f"is required: the configuration file ({SERVER_CONFIG_VARIABLE} does the same)"
        raise ConfigurationError([Problem(SERVER_CONFIG_FLAG, hint)])
    try:
        document = parse_document(read_text(Path(command.server_config)))
    except DocumentError as refused:
        raise ConfigurationError(
            Problem(problem.path or command.server_config, problem.message)
            for problem in refused.problems
        ) from None
    return validate_settings(settings, document, command.given)


def validate_settings(
    settings: type[SettingsT],
    document: JsonObject,
    given: Mapping[tuple[str, ...], tuple[str, str]] | None = None,
) -> SettingsT:
    """The settings of a parsed document with overrides, or `ConfigurationError`."""
    problems = list(_check_type(settings, document))
    body = {key: value for key, value in document.items() if key not in {"apiVersion", "kind"}}
    problems += _check_exporter(body)
    problems += _apply_overrides(body, given or {})
    validated, more = _validate_leniently(settings, body)
    problems += more
    wrong = {problem.path for problem in problems}
    problems += _check_rules(validated, wrong)
    if problems:
        raise ConfigurationError(sorted(set(problems)))
    return validated


def check_files(settings: Root) -> None:
    """Opens all configured files; `ConfigurationError` names those that cannot be read."""
    problems: list[Problem] = []
    for where, path in settings.configured_files():
        try:
            with path.open("rb"):
                pass
        except OSError as cause:
            why = cause.strerror or type(cause).__name__
            problems.append(Problem(where, f"{path}: cannot be read: {why}"))
    if problems:
        raise ConfigurationError(problems)


def _check_type(settings: type[Root], document: JsonObject) -> Iterable[Problem]:
    for key, expected in (("apiVersion", API_VERSION), ("kind", settings.KIND)):
        if document.get(key) != expected:
            yield Problem(key, f"must be {expected}")


def _check_exporter(body: JsonObject) -> Iterable[Problem]:
    """Refuses an endpoint in the file without an exporter. An endpoint in the environment may be
    set for a whole cluster and is only a warning (`find_warnings`).
    """
    section = body.get("telemetry")
    is_named = isinstance(section, dict) and bool(section.get("otlpEndpoint"))
    if is_named and (remedy := find_missing_exporter()):
        yield Problem("telemetry.otlpEndpoint", remedy)


def find_warnings(settings: Root) -> list[Problem]:
    """Problems that a process logs as warnings at its start."""
    if settings.telemetry.otlp_endpoint and (remedy := find_missing_exporter()):
        return [Problem("telemetry.otlpEndpoint", f"{remedy}; nothing is exported")]
    return []


def _apply_overrides(
    body: JsonObject, given: Mapping[tuple[str, ...], tuple[str, str]]
) -> Iterable[Problem]:
    """Sets overridden fields in `body`; a section that is not a mapping is refused later, by the
    validation.
    """
    parsers = {override.path: override.parse for override in OVERRIDES}
    for path, (text, source) in given.items():
        try:
            value = parsers[path](text)
        except ValueError as refused:
            yield Problem(format_path(path), f"{refused} (from {source})")
            continue
        section = body.setdefault(path[0], {})
        if isinstance(section, dict):
            section[path[1]] = value


def _validate_leniently(
    settings: type[SettingsT], body: JsonObject
) -> tuple[SettingsT, list[Problem]]:
    """The settings with defaults for wrong values, and a problem for each of these.

    A model only validates if all of it is right, so that wrong values are removed and it is
    validated again; then the rules can check the rest in the same run.
    """
    problems: list[Problem] = []
    remaining = _copy(body)
    while True:
        try:
            validated = settings.model_validate(remaining, by_alias=True, by_name=False)
        except ValidationError as refused:
            errors = refused.errors(include_url=False, include_context=False, include_input=False)
            for error in errors:
                path = _remove(remaining, error["loc"])
                problems.append(Problem(format_path(path), _describe(error["type"], error["msg"])))
        else:
            return validated, problems


def _remove(body: JsonObject, path: Sequence[str | int]) -> tuple[str | int, ...]:
    """Removes the deepest existing member of `path`; returns its path."""
    parent: Json = body
    for depth, step in enumerate(path):
        if not isinstance(parent, dict) or not isinstance(step, str) or step not in parent:
            break  # pydantic appends union members and validators to the path of a field
        if depth + 1 == len(path) or not _has(parent[step], path[depth + 1]):
            del parent[step]
            return tuple(path[: depth + 1])
        parent = parent[step]
    raise LookupError(f"no field {format_path(tuple(path))}: a setting without a default")


def _has(value: Json, step: str | int) -> bool:
    return isinstance(value, dict) and step in value


def _copy(body: JsonObject) -> JsonObject:
    return {key: _copy(value) if isinstance(value, dict) else value for key, value in body.items()}


def _describe(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "model_type":
        return "expected a mapping of keys to values"
    text = message.removeprefix("Value error, ").replace("Input should be", "must be")
    return text[:1].lower() + text[1:]


def _check_rules(settings: Root, wrong: set[str]) -> Iterable[Problem]:
    for rule in type(settings).rules():
        if any(_contains(path, field) for field in rule.fields for path in wrong):
            continue
        if message := rule.check(settings):
            yield Problem(rule.fields[0], message)


def _contains(path: str, field: str) -> bool:
    """Whether `path` is the field or a section that contains it."""
    return field == path or field.startswith(f"{path}.")
