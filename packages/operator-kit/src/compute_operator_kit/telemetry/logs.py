"""Log formatting: one line per record, a constant message with keys, as JSON or as text.

Keys of a whole reconcile (plane, controller, reconcileID, key) are bound once and are on each of
its lines. Values come from tenants and servers and are escaped, tracebacks too: none can end a
line, forge a key or control a terminal.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import nullcontext
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from types import MappingProxyType, TracebackType
from typing import Final, TextIO, TypeAlias

from typing_extensions import override

from compute_operator_kit.core.json import encode
from compute_operator_kit.core.text import cut_to_bytes, escape_unprintable

MAX_VALUE_BYTES: Final = 4096
MAX_STACK_BYTES: Final = 16384
RESERVED: Final = ("plane", "controller", "reconcileID", "key", "reason")
LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
# Libraries that log failures as ERROR and retry by themselves: alerts count our errors only.
DEMOTED: Final = ("opentelemetry",)
QUIET: Final = ("aiohttp.access", "opentelemetry")

# The number of attributes of an empty record; those of `extra` follow.
_PLAIN_ATTRIBUTES: Final = len(vars(logging.LogRecord("", 0, "", 0, "", None, None)))
_OF_FORMATTERS: Final = ("message", "asctime")  # set by formatters of other handlers
_Line: TypeAlias = Mapping[str, str | float | None]
_bound: ContextVar[Mapping[str, object]] = ContextVar("log keys", default=MappingProxyType({}))


class BoundKeys:
    """See `bound_keys`; a generator takes three times as long, in every reconcile."""

    __slots__ = ("_keys", "_token")

    def __init__(self, keys: Mapping[str, object]) -> None:
        self._keys = keys
        self._token: Token[Mapping[str, object]] | None = None

    def __enter__(self) -> None:
        self._token = _bound.set({**_bound.get(), **self._keys})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _bound.reset(self._token)


def bound_keys(**keys: object) -> BoundKeys:
    """Adds these keys to every line logged inside, by this task and the tasks it starts."""
    return BoundKeys(keys)


def set_up_logs(level: str, log_format: str, stream: TextIO) -> logging.Handler:
    """Replaces all handlers of the root logger; returns the new one, so that it can be removed."""
    handler = _LineHandler(stream)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    for former in root.handlers[:]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(LEVELS[level])
    for name in QUIET:
        logging.getLogger(name).setLevel(max(LEVELS[level], logging.WARNING))
    # Threads may log while the process stops: a lost line is better than a traceback about it.
    logging.raiseExceptions = False
    # Lines have no thread, process or position, and finding these takes half the time of a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # The documented way to leave out the position.
    logging._srcfile = None  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return handler


class _LineHandler(logging.StreamHandler[TextIO]):
    """Writes each record as one line without the filter checks of `logging`, because every write to
    a plane is logged.
    """

    @override
    def handle(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            _demote_foreign(record)
        try:
            line = self.format(record) + self.terminator
            with self.lock or nullcontext():
                self.stream.write(line)
                self.stream.flush()
        except Exception:  # noqa: BLE001 - as in `logging`: a line that cannot be written is lost
            self.handleError(record)
        return True


def _demote_foreign(record: logging.LogRecord) -> None:
    if record.name.partition(".")[0] in DEMOTED:
        record.levelno, record.levelname = logging.WARNING, "WARNING"


def gather_keys(record: logging.LogRecord) -> dict[str, object]:
    """Bound keys and those of the record, which win; reserved keys first, in a fixed order."""
    keys = {**_bound.get(), **dict(islice(vars(record).items(), _PLAIN_ATTRIBUTES, None))}
    for name in _OF_FORMATTERS:
        keys.pop(name, None)
    ordered = {name: keys.pop(name) for name in RESERVED if name in keys}
    return ordered | keys


def _moment(record: logging.LogRecord) -> str:
    second, rest = divmod(int(record.created * 1000), 1000)
    return f"{_format_second(second)}.{rest:03d}+00:00"


@lru_cache(maxsize=1)  # under load there are hundreds of lines per second
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class JsonFormatter(logging.Formatter):
    """One JSON object per line in ASCII; all other characters are escaped."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, str | float | None] = {
            "ts": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        for name, value in gather_keys(record).items():
            line[name] = value if type(value) is str else _jsonable(value)
        if record.exc_info:
            stack = cut_to_bytes(self.formatException(record.exc_info), MAX_STACK_BYTES)
            return _ENCODER.encode({**_cut_all(line), "stack": stack})
        return _encode_short(line) or _ENCODER.encode(_cut_all(line))


class TextFormatter(logging.Formatter):
    """`time LEVEL message key=value`, with the same escaping."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        fields = [
            _moment(record),
            f"{record.levelname:<7}",
            escape_unprintable(record.getMessage()),
        ]
        fields += [f"{_key(name)}={_quote(value)}" for name, value in gather_keys(record).items()]
        if record.exc_info:
            stack = cut_to_bytes(self.formatException(record.exc_info), MAX_STACK_BYTES)
            fields.append(f"stack={json.dumps(escape_unprintable(stack))}")
        return " ".join(fields)


def _cut(value: object) -> str:
    return cut_to_bytes(str(value), MAX_VALUE_BYTES)


# Built once: `json.dumps` with options builds one per call.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=True, default=_cut)


def _encode_short(line: _Line) -> str | None:
    """The line by the fast codec, if it is short and ASCII, for which both codecs are equal; else
    None.
    """
    try:
        text = encode(line).decode("ascii")
    except (UnicodeDecodeError, TypeError):  # not ASCII; a lone surrogate or a huge number
        return None
    return text if len(text) <= MAX_VALUE_BYTES and text.isprintable() else None


def _cut_all(line: _Line) -> _Line:
    return {name: _jsonable(value) for name, value in line.items()}


def _jsonable(value: object) -> str | float | None:
    return value if value is None or isinstance(value, int | float) else _cut(value)


def _key(name: str) -> str:
    return escape_unprintable(name).replace(" ", "_").replace("=", "_")


def _quote(value: object) -> str:
    text = escape_unprintable(_cut(value))
    is_plain = text and not any(char in ' "=\\' for char in text)
    return text if is_plain else json.dumps(text, ensure_ascii=False)
