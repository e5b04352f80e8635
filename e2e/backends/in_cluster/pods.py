"""Pods of one Deployment: found through the API, looked at and hurt through the host.

Asked without an event loop, because a metric is read from wherever a scenario stands. What the
kernel knows of a container (its processes, its memory) is found by the id in the pod's status.
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
from e2e.backends.in_cluster.host import HostOfPods
from e2e.backends.in_cluster.overlay import SYSTEM
from e2e.objects import name_of, number_at, objects_at, text_at, uid_of
from e2e.planes.client import Endpoint

APP: Final = "app.kubernetes.io/name"
CONTAINER: Final = "operator"
METRICS_PORT: Final = 8443
SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod as its status tells it."""

    name: str
    uid: str
    address: str
    container: str  # its id; empty while it has none
    restarts: int
    last_end: str  # why its container ended last
    is_ready: bool
    is_going: bool
    # From the start of its first container to Ready; nothing where either is not so.
    took: timedelta | None = None


def parse_pod(found: JsonObject) -> Pod:
    statuses = objects_at(found, "status", "containerStatuses")
    status: JsonObject = statuses[0] if statuses else {}
    conditions = objects_at(found, "status", "conditions")
    ready = [
        text_at(one, "lastTransitionTime")
        for one in conditions
        if (text_at(one, "type"), text_at(one, "status")) == ("Ready", "True")
    ]
    end = ("lastState", "terminated")
    started = text_at(status, "state", "running", "startedAt")
    return Pod(
        name=name_of(found),
        uid=uid_of(found),
        address=text_at(found, "status", "podIP"),
        container=text_at(status, "containerID"),
        restarts=number_at(status, "restartCount"),
        last_end=f"{text_at(status, *end, 'reason')} {number_at(status, *end, 'exitCode')}",
        is_ready=bool(ready),
        is_going=bool(text_at(found, "metadata", "deletionTimestamp")),
        took=_between(started, ready[0]) if ready and started else None,
    )


def _between(started: str, ready: str) -> timedelta:
    return datetime.fromisoformat(ready) - datetime.fromisoformat(started)


class Pods:
    """Those of one Deployment on one node."""

    def __init__(self, node: HostOfPods, deployment: str) -> None:
        self.node = node
        self.deployment = deployment
        plane = node.plane
        authority = plane.site.pki.authority.decode()
        self._trusted = ssl.create_default_context(cadata=authority)
        # The certificate of the metrics is for names; a pod is reached at an address of its own.
        self._any_name = ssl.create_default_context(cadata=authority)
        self._any_name.check_hostname = False

    def find(self) -> list[Pod]:
        query = urlencode({"labelSelector": f"{APP}={self.deployment}"})
        path = f"/api/v1/namespaces/{SYSTEM}/pods?{query}"
        found: JsonValue = json.loads(self._ask(self.node.plane.endpoint(), path))
        return [parse_pod(one) for one in objects_at(found, "items")]

    def running(self) -> list[Pod]:
        """Those that are there to stay."""
        return [pod for pod in self.find() if not pod.is_going and pod.address]

    def scrape(self, pod: Pod, user: str) -> str:
        """What it tells of itself, to somebody who may read it."""
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
            except ProcessLookupError:  # it ended meanwhile
                continue
