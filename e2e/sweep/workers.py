"""Jobs side by side in forked processes, which inherit what their parent has imported.

A job is a generator of JSON objects; each is a line in a pipe and reaches the parent at once, so
that a violation is printed while the others still run. A job that fails is a line of its own.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NoReturn, TypeAlias, TypeVar

_Job = TypeVar("_Job")

Line: TypeAlias = dict[str, object]
AT_ONCE: Final = 1 << 16  # bytes of one read from a pipe


@dataclass(slots=True)
class _Worker(Generic[_Job]):
    """A process at work, and what it has sent of the next line."""

    job: _Job
    child: int
    rest: bytes = b""

    def lines(self, received: bytes) -> list[Line]:
        *whole, self.rest = (self.rest + received).split(b"\n")
        return [json.loads(line) for line in whole]


def run_forked(
    jobs: Sequence[_Job], work: Callable[[_Job], Iterable[Line]], processes: int
) -> Iterator[tuple[_Job, Line]]:
    """Every line of every job, as it comes."""
    gc.collect()
    gc.freeze()  # the collector would copy the pages of every object into every child
    waiting = [*reversed(jobs)]
    with selectors.DefaultSelector() as selector:
        while waiting or selector.get_map():
            while waiting and len(selector.get_map()) < max(1, processes):
                _start(waiting.pop(), work, selector)
            for key, _ in selector.select():
                worker: _Worker[_Job] = key.data
                received = os.read(key.fd, AT_ONCE)
                for line in worker.lines(received):
                    yield worker.job, line
                if not received:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _, status = os.waitpid(worker.child, 0)
                    if status:
                        yield worker.job, {"failure": f"the worker ended with status {status}"}
    gc.unfreeze()


def _start(
    job: _Job, work: Callable[[_Job], Iterable[Line]], selector: selectors.BaseSelector
) -> None:
    ours, theirs = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.close(theirs)
        selector.register(ours, selectors.EVENT_READ, _Worker(job, child))
        return
    os.close(ours)
    _work(job, work, theirs)


def _work(job: _Job, work: Callable[[_Job], Iterable[Line]], pipe: int) -> NoReturn:
    """Sends every line, and ends without the clean-up of the parent."""
    with os.fdopen(pipe, "wb", buffering=0) as sent:
        try:
            for line in work(job):
                sent.write(json.dumps(line).encode() + b"\n")
        except BaseException:  # noqa: BLE001 -- the parent reports it
            failure = {"failure": f"the worker ended: {traceback.format_exc(limit=-3)}"}
            sent.write(json.dumps(failure).encode() + b"\n")
    os._exit(0)
