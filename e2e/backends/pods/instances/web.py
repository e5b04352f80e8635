"""The program of Instances in scenarios: answers HTTP on port 8080, or ends as its image says.

```
ok         answers with hostname and environment       slow-<n>    answers after n s
crash      ends at once with exit code 1               flap        answers and ends after 15 s
oom        fills its memory until the kernel ends it
```

It runs isolated in a container with a few hundredths of a CPU, and imports little.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

PORT = 8080
FLAP_RUN = 15.0
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
    while True:
        listening.settimeout(None if ends_at is None else max(0.0, ends_at - time.monotonic()))
        try:
            accepted, _ = listening.accept()
        except (TimeoutError, BlockingIOError):
            sys.exit(1)
        answer(accepted)


def answer(accepted: socket.socket) -> None:
    with accepted:
        accepted.settimeout(5.0)
        try:
            accepted.recv(4096)
            lines = [f"{name}={value}" for name, value in sorted(os.environ.items())]
            body = "\n".join([f"hostname={socket.gethostname()}", *lines]).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            accepted.sendall(head.encode() + body)
        except OSError:
            return  # the client has gone


if __name__ == "__main__":
    main(os.environ.get("BEHAVIOUR", "ok"))
