"""One of two replicas as a process: it writes while it holds the Lease.

`python -m example_operator.candidate KUBECONFIG NAME` prints `leading` when it holds the Lease, and
`wrote N` after each write. `is_leading` is checked right before the write, as in the applier.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from random import SystemRandom
from urllib.parse import urlsplit

from compute_kubeconfig.credentials import FileCredentials
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.client.transport.aiohttp import AiohttpTransport, Tls, open_session
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.metrics import NoMetrics
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.process.election import Timing
from compute_operator_kit.process.leader import LEASE, Candidacy, Election, LeaseLostError

HOME = PlaneName("home")
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
BOARD = ObjectKey(HOME, CONFIG_MAP, "default", "board")
PAUSE = timedelta(milliseconds=200)


async def main(kubeconfig: Path, name: str) -> None:
    clock = SystemClock()
    credentials = FileCredentials.from_kubeconfig(kubeconfig, clock=clock)
    url = urlsplit(credentials.server)
    async with open_session() as session:
        tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)
        config = RestConfig(
            plane=HOME,
            role=Role.HOME,
            transport=AiohttpTransport(session, f"{url.scheme}://{url.netloc}", tls),
            lane=FlowControl(HOME, clock),
            credentials=credentials,
            base_path=url.path,
        )
        kube = HttpKubeClient(config, FieldOwner(name, name))
        election = Election(
            kube,
            Candidacy(ObjectKey(HOME, LEASE, "default", "example"), name, Timing()),
            clock=clock,
            random=SystemRandom(),
            measures=NoMetrics(),
        )

        async def write() -> None:
            log("leading")
            number = 0
            while election.is_leading:
                number += 1
                body = {"data": {"writer": name, "number": str(number)}}
                await kube.patch_merge(BOARD, body)
                log(f"wrote {number}")
                await clock.sleep(PAUSE)

        try:
            await election.lead(write)
        except LeaseLostError:
            log("lost")


def log(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
