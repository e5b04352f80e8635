"""A run of the bucket service against a simulated plane and a fake quota server, told line by line.

Without it the example could stop working unseen: `./dev docs` runs this, and a line that does not
come within a minute ends it with an error.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import httpx
import kopf
import yaml
from bucket_service import GIB, register

from compute_quota_client.testing import FakeQuota

HERE: Final = Path(__file__).parent
PATH: Final = "/apis/storage.example.com/v1/namespaces/default/buckets"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Buckets:
    """Buckets on the simulated plane, and what they reserve."""

    def __init__(self, api: httpx.AsyncClient, fake: FakeQuota) -> None:
        self._api = api
        self._fake = fake

    async def create(self, name: str, size: int) -> None:
        document = {
            "apiVersion": "storage.example.com/v1",
            "kind": "Bucket",
            "metadata": {"name": name},
            "spec": {"sizeGiB": size},
        }
        (await self._api.post(PATH, json=document)).raise_for_status()

    async def tell(self, name: str, phase: str) -> None:
        """Waits for the phase and prints it."""
        while True:
            found = (await self._api.get(f"{PATH}/{name}")).raise_for_status().json()
            status = found.get("status", {})
            if status.get("phase") == phase:
                break
            await asyncio.sleep(0.1)
        if phase == "Ready":
            say(f"{name}: Granted, {self.reserved} GiB are reserved")
        else:
            say(f"{name}: Denied, {status['message'].partition('.')[0]}")

    async def delete(self, name: str) -> None:
        """Deletes one and waits until it is gone, which its finalizer allows after the release."""
        (await self._api.delete(f"{PATH}/{name}")).raise_for_status()
        while True:
            if (await self._api.get(f"{PATH}/{name}")).status_code == 404:
                break
            await asyncio.sleep(0.1)
        say(f"{name} was deleted, {self.reserved} GiB are reserved")

    @property
    def reserved(self) -> int:
        return self._fake.reserved("acme", GIB)


async def run(server: str, token: str) -> None:
    fake = FakeQuota()
    fake.add_project("acme")
    fake.register(GIB)
    fake.grant("acme", {GIB: 50})
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    stop, ready = asyncio.Event(), asyncio.Event()
    async with fake.client() as quota, open_api(server, token) as api:
        register(registry, quota, "acme", again=0.5)
        operator = asyncio.create_task(
            kopf.operator(
                registry=registry,
                settings=settings,
                standalone=True,
                namespaces=["default"],
                stop_flag=stop,
                ready_flag=ready,
            )
        )
        await ready.wait()
        async with asyncio.timeout(60):
            await tell_the_story(Buckets(api, fake))
        stop.set()
        await operator


def open_api(server: str, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server, headers={"Authorization": f"Bearer {token}"})


async def tell_the_story(buckets: Buckets) -> None:
    await buckets.create("logs", 50)
    await buckets.tell("logs", "Ready")
    await buckets.create("more-logs", 10)
    await buckets.tell("more-logs", "Waiting")
    await buckets.delete("logs")
    await buckets.tell("more-logs", "Ready")
    await buckets.delete("more-logs")


def main() -> None:
    command = [sys.executable, "-m", "compute_sim_planes", "--plain-http", "--plane", "cluster"]
    command += ["--apply", str(HERE / "bucket-crd.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as planes:
        try:
            line = planes.stdout.readline() if planes.stdout else ""
            name, _, path = line.strip().partition("=")
            if name != "KUBECONFIG":
                sys.exit("the simulated plane did not start")
            os.environ["KUBECONFIG"] = path
            known = yaml.safe_load(Path(path).read_text("utf-8"))
            server = known["clusters"][0]["cluster"]["server"]
            asyncio.run(run(server, known["users"][0]["user"]["token"]))
        finally:
            planes.terminate()


if __name__ == "__main__":
    main()
