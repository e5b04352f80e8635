from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.telemetry.logs import (
    MAX_VALUE_BYTES,
    QUIET,
    JsonFormatter,
    TextFormatter,
    bound_keys,
    set_up_logs,
)

HOSTILE = (
    "\nlevel=error msg=forged",
    "\r\x1b[2J\x1b]0;owned\x07",
    "\u202e\u2066gnihsihp",
    "\u2028\u2029\x85",
    "\x00\x7f\x9b31m",
    '" injected="yes',
    "\ud800",
)


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Logs set up as in a process, and what was there before put back."""
    root = logging.getLogger()
    handlers, level, raises = root.handlers[:], root.level, logging.raiseExceptions
    levels = {name: logging.getLogger(name).level for name in QUIET}
    stream = io.StringIO()
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raises
    for name, former in levels.items():
        logging.getLogger(name).setLevel(former)


def record_of(message: str, extra: dict[str, object]) -> logging.LogRecord:
    return logging.getLogger("compute.test").makeRecord(
        "compute.test", logging.INFO, "", 0, message, (), None, extra=extra
    )


def test_a_line_is_one_json_object_with_a_constant_message_and_keys(stream: io.StringIO) -> None:
    set_up_logs("info", "json", stream)

    with bound_keys(plane="p1", controller="workload", reconcileID="r-1"):
        logging.getLogger("compute.test").info(
            "Applying Workload", extra={"reason": "Drift", "count": 2}
        )

    line = json.loads(stream.getvalue())
    assert line.pop("ts").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "compute.test",
        "msg": "Applying Workload",
        "plane": "p1",
        "controller": "workload",
        "reconcileID": "r-1",
        "reason": "Drift",
        "count": 2,
    }


def test_a_text_line_has_the_same_keys(stream: io.StringIO) -> None:
    set_up_logs("info", "text", stream)

    with bound_keys(plane="p1"):
        logging.getLogger("compute.test").info("Applying Workload", extra={"reason": "two words"})

    assert stream.getvalue().endswith('INFO    Applying Workload plane=p1 reason="two words"\n')


def test_bound_keys_end_with_their_block(stream: io.StringIO) -> None:
    set_up_logs("info", "json", stream)

    with bound_keys(plane="p1"), bound_keys(key="k"):
        pass
    logging.getLogger("compute.test").info("Outside")

    assert "plane" not in json.loads(stream.getvalue())


async def test_bound_keys_of_one_task_do_not_show_in_another(stream: io.StringIO) -> None:
    set_up_logs("info", "json", stream)

    async def act(plane: str) -> None:
        with bound_keys(plane=plane):
            await asyncio.sleep(0)
            logging.getLogger("compute.test").info("Acting", extra={"expected": plane})

    await asyncio.gather(act("p1"), act("p2"))

    for line in map(json.loads, stream.getvalue().splitlines()):
        assert line["plane"] == line["expected"]


@pytest.mark.spec("S15")
@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_value_can_forge_a_line_or_steer_a_terminal(
    stream: io.StringIO, log_format: str, hostile: str
) -> None:
    set_up_logs("info", log_format, stream)
    logger = logging.getLogger("compute.test")

    with bound_keys(plane=hostile):
        logger.info("Applying %s", hostile, extra={"reason": hostile, hostile: hostile})
        try:
            raise ValueError(hostile)
        except ValueError:
            logger.exception("Failing")

    written = stream.getvalue()
    assert len(written.splitlines()) == 2
    assert all(line.isprintable() for line in written.splitlines())


@pytest.mark.spec("S15")
@given(st.text(st.characters(codec=None, categories=None)), st.text(max_size=1000))
def test_every_line_is_printable(message: str, value: str) -> None:
    record = record_of("x", {"value": value})
    record.msg = message.replace("%", "")

    for formatter in (JsonFormatter(), TextFormatter()):
        assert formatter.format(record).isprintable()
    assert json.loads(JsonFormatter().format(record))["value"] == value


@pytest.mark.spec("S15")
def test_a_text_value_cannot_pretend_to_be_another_key() -> None:
    line = TextFormatter().format(record_of("x", {"who": 'a" admin="true', "empty": ""}))

    assert line.endswith(r'x who="a\" admin=\"true" empty=""')


def test_an_endless_value_is_cut() -> None:
    line = JsonFormatter().format(record_of("x", {"value": "é" * 10000}))

    assert len(json.loads(line)["value"].encode()) == MAX_VALUE_BYTES


def test_an_error_brings_its_stack_on_the_same_line(stream: io.StringIO) -> None:
    set_up_logs("info", "json", stream)

    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("compute.test").exception("Failing")

    line = json.loads(stream.getvalue())
    assert line["level"] == "error"
    assert "Traceback" in line["stack"]
    assert "ValueError: broken" in line["stack"]


def test_errors_of_libraries_that_retry_are_warnings(stream: io.StringIO) -> None:
    set_up_logs("info", "json", stream)

    logging.getLogger("opentelemetry.exporter").error("Transient error; will retry")
    logging.getLogger("compute.test").error("Ours")

    levels = [json.loads(line)["level"] for line in stream.getvalue().splitlines()]
    assert levels == ["warning", "error"]


def test_chatter_of_libraries_is_left_out(stream: io.StringIO) -> None:
    set_up_logs("debug", "json", stream)

    logging.getLogger("opentelemetry.sdk").info("Exporting a batch.")

    assert stream.getvalue() == ""
