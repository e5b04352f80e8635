"""The webhooks of Workloads and deployments beside each other, by kopf in its thread."""

from __future__ import annotations

import asyncio
import io
import ssl
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import aiohttp
import pytest

from compute_management_operator.admission.host.kopf_host import KopfHost
from compute_management_operator.admission.host.server import Webhook
from compute_management_operator.admission.review import AdmissionAllowed, AdmissionRefused
from compute_management_operator.admission.webhook import DEPLOYMENT_PATH, PATH, Handlers
from compute_management_operator.planes import DEPLOYMENT, WORKLOAD
from compute_operator_kit.config.settings import Bind
from compute_operator_kit.core.json import JsonObject, encode
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.core.metrics import NoMetrics
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.process.certificates import ServingCertificate
from compute_operator_kit.testing.certificates import Authority


def a_review(kind: Kind) -> bytes:
    resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    request: dict[str, Any] = {
        "uid": "review-1",
        "resource": resource,
        "operation": "CREATE",
        "userInfo": {"username": "anna"},
        "object": {"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {}},
        "oldObject": None,
    }
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return encode({**head, "request": request})


@pytest.mark.spec("RD-17")
async def test_each_path_is_answered_by_the_review_of_its_kind(tmp_path: Path) -> None:
    authority, port = Authority("webhook"), SystemRandom().randrange(20000, 32000)
    files = authority.issue().write(tmp_path)
    clock = SystemClock()
    certificate = ServingCertificate("webhook", *files, clock=clock, measures=NoMetrics())

    async def admit(_: JsonObject) -> AdmissionAllowed:
        return AdmissionAllowed("Valid", ("as a Workload",))

    async def refuse(review: JsonObject) -> AdmissionRefused:
        request = review["request"]
        assert isinstance(request, dict)
        assert request["userInfo"] == {"username": "anna"}
        return AdmissionRefused({"code": 422, "message": "as a deployment"})

    handlers = Handlers(admit, asyncio.get_running_loop(), refuse)
    webhook = Webhook(
        Bind("127.0.0.1", port), certificate, [PATH, DEPLOYMENT_PATH], [WORKLOAD, DEPLOYMENT]
    )
    host = KopfHost(
        handlers.register,
        webhook,
        clock=clock,
        random=Random(1),  # noqa: S311  # jitter, not a secret
        measures=NoMetrics(),
    )
    host.start()
    try:
        async with asyncio.timeout(20):
            while host.find_unready() is not None:  # noqa: ASYNC110  # of another thread
                await asyncio.sleep(0.02)
        context = ssl.create_default_context(cadata=authority.certificate.decode())
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def ask(path: str, kind: Kind) -> Any:  # noqa: ANN401 - an answer on the wire
                headers = {"Content-Type": "application/json"}
                url = f"https://127.0.0.1:{port}/{path}"
                body = io.BytesIO(a_review(kind))
                async with session.post(url, data=body, headers=headers) as answer:
                    return (await answer.json())["response"]

            workload = await ask(PATH, WORKLOAD)
            deployment = await ask(DEPLOYMENT_PATH, DEPLOYMENT)
    finally:
        await host.stop()
    assert (workload["allowed"], workload["warnings"]) == (True, ["as a Workload"])
    assert deployment["allowed"] is False
    assert deployment["status"]["message"] == "as a deployment"
