"""One of two replicas, as a process: leads by a Lease and, while it does, writes as fast as it may.

`python -m example_operator.candidate KUBECONFIG NAME`. Tells on stdout what it did: `leading` when
the Lease is its own, `wrote N` after each write. The write itself asks `is_leading` last of all, as
the kit's one writer does.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from random import SystemRandom
from urllib.parse import urlsplit

from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.election import Timing
from compute_operator_kit.exchange import Connection
from compute_operator_kit.http_transport import AiohttpTransport, Tls, open_session
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.leader import LEASE, Candidacy, Election, LeaseLostError
from compute_operator_kit.measures import NoMeasures
from compute_operator_kit.system_clock import SystemClock

HOME = PlaneName("home")
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
BOARD = ObjectKey(HOME, CONFIG_MAP, "default", "board")
PAUSE = timedelta(milliseconds=200)


async def main(kubeconfig: Path, name: str) -> None:
    clock = SystemClock()
    credentials = FileCredentials.from_kubeconfig(kubeconfig, clock=clock)
    found = urlsplit(credentials.server)
    async with open_session() as session:
        tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)
        connection = Connection(
            plane=HOME,
            role=Role.HOME,
            transport=AiohttpTransport(session, f"{found.scheme}://{found.netloc}", tls),
            lane=Lane(HOME, clock),
            credentials=credentials,
            base_path=found.path,
        )
        kube = KubeHttp(connection, Writer(name, name))
        election = Election(
            kube,
            Candidacy(ObjectKey(HOME, LEASE, "default", "example"), name, Timing()),
            clock=clock,
            random=SystemRandom(),
            measures=NoMeasures(),
        )

        async def write() -> None:
            say("leading")
            number = 0
            while election.is_leading:
                number += 1
                body = {"data": {"writer": name, "number": str(number)}}
                await kube.patch_merge(BOARD, body)
                say(f"wrote {number}")
                await clock.sleep(PAUSE)

        try:
            await election.lead(write)
        except LeaseLostError:
            say("lost")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
