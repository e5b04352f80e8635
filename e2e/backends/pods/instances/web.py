"""The program of Instances in scenarios: answers HTTP on port 8080, or ends as its image says.

```
ok         answers with hostname and environment       slow-<n>    answers after n s
crash      ends at once with exit code 1               flap        answers and ends after 15 s
oom        fills its memory until the kernel ends it
```

From a request of `/burn` to one of `/rest` a process of its own uses all of the container's CPU. It
runs isolated in a container with a few hundredths of a CPU, and imports little.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

PORT = 8080
FLAP_RUN = 15.0
LARGEST_FD = 64
DRAIN = 1.5  # seconds; the grace period is 2


def main(behaviour: str) -> None:
    # Process 1 of a container has no default action for it. It goes on answering for a moment, as
    # servers do whose address clients may still have.
    signal.signal(signal.SIGTERM, drain)
    signal.signal(signal.SIGALRM, end)
    if behaviour == "crash":
        sys.exit(1)
    if behaviour == "oom":
        fill_memory()
    if behaviour.startswith("slow-"):
        time.sleep(int(behaviour.removeprefix("slow-")))
    serve(time.monotonic() + FLAP_RUN if behaviour == "flap" else None)


def drain(_signal: int, _frame: object) -> None:
    signal.setitimer(signal.ITIMER_REAL, DRAIN)


def end(_signal: int, _frame: object) -> None:
    os._exit(0)


def fill_memory() -> None:
    eaten: list[bytearray] = []
    while True:
        eaten.append(bytearray(b"x" * (4 << 20)))


def serve(ends_at: float | None) -> None:
    listening = socket.create_server(("", PORT))
    burning: list[int] = []  # the process that burns CPU
    while True:
        listening.settimeout(None if ends_at is None else max(0.0, ends_at - time.monotonic()))
        try:
            accepted, _ = listening.accept()
        except (TimeoutError, BlockingIOError):
            sys.exit(1)
        answer(accepted, burning)


def burn(burning: list[int]) -> None:
    """A process of its own: the server must still answer."""
    if burning:
        return
    pid = os.fork()
    if pid == 0:
        os.closerange(0, LARGEST_FD)  # else the client never sees the end of its answer
        while True:
            pass
    burning.append(pid)


def rest(burning: list[int]) -> None:
    while burning:
        pid = burning.pop()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def answer(accepted: socket.socket, burning: list[int]) -> None:
    with accepted:
        accepted.settimeout(5.0)
        try:
            asked = accepted.recv(4096)
            if asked.startswith(b"GET /burn "):
                burn(burning)
            if asked.startswith(b"GET /rest "):
                rest(burning)
            lines = [f"{name}={value}" for name, value in sorted(os.environ.items())]
            body = "\n".join([f"hostname={socket.gethostname()}", *lines]).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            accepted.sendall(head.encode() + body)
        except OSError:
            return  # the client has gone


if __name__ == "__main__":
    main(os.environ.get("BEHAVIOUR", "ok"))
