"""Pods of one Deployment: listed through the API, scraped, and signalled through the host.

Requests are synchronous, because scenarios read a metric from any thread. Processes and memory of a
container are found by the container id in the pod's status.
"""

from __future__ import annotations

import http
import http.client
import json
import os
import signal
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from compute_api_types.wire import JsonObject, JsonValue
from e2e.backends.pods.host import PodHost
from e2e.backends.pods.overlay import SYSTEM
from e2e.harness.access.client import Endpoint
from e2e.world.objects import name_of, number_at, objects_at, text_at, uid_of

APP: Final = "app.kubernetes.io/name"
CONTAINER: Final = "operator"
METRICS_PORT: Final = 8443
SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod, from its status."""

    name: str
    uid: str
    address: str
    container: str  # container id; empty before it is created
    restarts: int
    last_end: str  # reason of its last termination
    is_ready: bool
    is_terminating: bool
    # From the start of its first container to Ready; None if either is missing.
    took: timedelta | None = None


def parse_pod(document: JsonObject) -> Pod:
    statuses = objects_at(document, "status", "containerStatuses")
    status: JsonObject = statuses[0] if statuses else {}
    conditions = objects_at(document, "status", "conditions")
    ready = [
        text_at(one, "lastTransitionTime")
        for one in conditions
        if (text_at(one, "type"), text_at(one, "status")) == ("Ready", "True")
    ]
    end = ("lastState", "terminated")
    started = text_at(status, "state", "running", "startedAt")
    return Pod(
        name=name_of(document),
        uid=uid_of(document),
        address=text_at(document, "status", "podIP"),
        container=text_at(status, "containerID"),
        restarts=number_at(status, "restartCount"),
        last_end=f"{text_at(status, *end, 'reason')} {number_at(status, *end, 'exitCode')}",
        is_ready=bool(ready),
        is_terminating=bool(text_at(document, "metadata", "deletionTimestamp")),
        took=_between(started, ready[0]) if ready and started else None,
    )


def _between(started: str, ready: str) -> timedelta:
    return datetime.fromisoformat(ready) - datetime.fromisoformat(started)


class Pods:
    """The pods of one Deployment on one node."""

    def __init__(self, node: PodHost, deployment: str) -> None:
        self.node = node
        self.deployment = deployment
        plane = node.plane
        authority = plane.runtime.pki.authority.decode()
        self._trusted = ssl.create_default_context(cadata=authority)
        # The metrics certificate has DNS names, and a pod is reached by its IP address.
        self._any_name = ssl.create_default_context(cadata=authority)
        self._any_name.check_hostname = False

    def find(self) -> list[Pod]:
        query = urlencode({"labelSelector": f"{APP}={self.deployment}"})
        path = f"/api/v1/namespaces/{SYSTEM}/pods?{query}"
        listed: JsonValue = json.loads(self._ask(self.node.plane.endpoint(), path))
        return [parse_pod(one) for one in objects_at(listed, "items")]

    def running(self) -> list[Pod]:
        """Pods that are not terminating."""
        return [pod for pod in self.find() if not pod.is_terminating and pod.address]

    def scrape(self, pod: Pod, user: str) -> str:
        """The pod's metrics, read as `user`."""
        endpoint = self.node.plane.endpoint(user)
        own = Endpoint(f"https://{pod.address}:{METRICS_PORT}", endpoint.authority, endpoint.token)
        return self._ask(own, "/metrics", self._any_name)

    def _ask(self, endpoint: Endpoint, path: str, trusted: ssl.SSLContext | None = None) -> str:
        address = urlsplit(endpoint.server)
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=trusted or self._trusted, timeout=SECONDS
        )
        try:
            connection.request("GET", path, headers=endpoint.headers())
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError as cause:
            raise AssertionError(f"reading {path} of {self.deployment}: {cause}") from cause
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise AssertionError(f"reading {path} of {self.deployment}: {answer.status} {text}")
        return text

    # --- its processes ---------------------------------------------------------------------------

    def pids(self, pod: Pod) -> list[int]:
        return self.node.pids_of_container(pod.container) if pod.container else []

    def rss(self, pod: Pod) -> int:
        """Resident bytes of its processes."""
        pages = [Path(f"/proc/{pid}/statm").read_text("ascii").split() for pid in self.pids(pod)]
        return sum(int(page[1]) for page in pages) * os.sysconf("SC_PAGE_SIZE")

    def signal(self, pod: Pod, number: signal.Signals) -> None:
        for pid in self.pids(pod):
            try:
                os.kill(pid, number)
            except ProcessLookupError:  # the process ended meanwhile
                continue
