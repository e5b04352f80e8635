"""Log records of kopf, at the levels that they have for the operators of this platform.

kopf logs each of its own retries as an ERROR, which here means that a person has to act, and logs
refused objects with the text of the user. Only a handler that raised stays an ERROR.
"""

from __future__ import annotations

import logging
from typing import Final

KOPF: Final = "kopf"
HANDLERS: Final = "kopf.objects"  # where kopf logs what a handler raised
# Loggers that kopf creates while it runs.
ACTIVITIES: Final = tuple(
    f"kopf.activities.{name}" for name in ("startup", "cleanup", "authentication")
)


def filter_record(record: logging.LogRecord) -> bool:
    """A `logging` filter: whether a record of kopf is logged, at a level of ours."""
    if record.name == HANDLERS:
        return bool(record.exc_info)  # else a refusal, with what the user wrote
    if "OS signals are ignored" in record.msg:
        return False  # at every start: signals belong to the process, not to kopf
    if record.levelno >= logging.ERROR:
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


def tame_kopf_logs() -> None:
    """Called before each start of kopf: its loggers exist and the level of the process is known."""
    level = max(logging.getLogger().level, logging.WARNING)
    logging.getLogger(KOPF).setLevel(level)
    for name in (*ACTIVITIES, *logging.root.manager.loggerDict):
        # A filter counts only for records of its own logger, not for those of descendants.
        if name.partition(".")[0] == KOPF:
            logging.getLogger(name).addFilter(filter_record)
