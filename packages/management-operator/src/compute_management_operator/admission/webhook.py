"""The admission handlers that kopf calls, and the host that runs kopf for them.

kopf has a thread and an event loop of its own. The caches from which a Workload is admitted belong
to the operator's loop and must not be read from another thread: a review is run there, and its
result awaited here. Under virtual time this module is not used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import kopf

from compute_management_operator.admission.host.kopf_host import KopfHost
from compute_management_operator.admission.host.server import Webhook, admission_refusal
from compute_management_operator.admission.review import AdmissionAllowed, AdmissionResult
from compute_management_operator.planes import DEPLOYMENT, WORKLOAD
from compute_operator_kit.config.settings import Bind, WebhookServerSettings
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.process.operator_process import OperatorProcess

PATH: Final = "validate-compute-datumapis-com-v1alpha-workload"  # api.md 12.1, without the slash
DEPLOYMENT_PATH: Final = "validate-compute-datumapis-com-v1alpha-workloaddeployment"
Review: TypeAlias = Callable[[JsonObject], Coroutine[Any, Any, AdmissionResult]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handlers:
    """Handlers of kopf; `loop` is the operator's."""

    review: Review
    loop: asyncio.AbstractEventLoop
    review_deployment: Review | None = None  # None: deployments are not reviewed

    def register(self, registry: kopf.OperatorRegistry) -> None:
        kopf.on.startup(id="start", registry=registry)(self.start)
        kopf.on.cleanup(id="stop", registry=registry)(self.stop)
        kopf.on.validate(
            WORKLOAD.group, WORKLOAD.version, WORKLOAD.plural, id=PATH, registry=registry
        )(self.validate)
        if self.review_deployment is not None:
            kopf.on.validate(
                DEPLOYMENT.group,
                DEPLOYMENT.version,
                DEPLOYMENT.plural,
                id=DEPLOYMENT_PATH,
                registry=registry,
            )(self.validate_deployment)

    async def start(self, **_: object) -> None:
        logger.info("Opening front door", extra={"webhook": True})

    async def stop(self, **_: object) -> None:
        logger.info("Closing front door")

    async def validate(
        self,
        *,
        userinfo: Mapping[str, Any],
        warnings: list[str],
        **given: Any,  # noqa: ANN401 - all that kopf passes to a handler; only the objects are read
    ) -> None:
        await self._answer(self.review, userinfo, warnings, given)

    async def validate_deployment(
        self,
        *,
        userinfo: Mapping[str, Any],
        warnings: list[str],
        **given: Any,  # noqa: ANN401 - as above
    ) -> None:
        await self._answer(self.review_deployment or self.review, userinfo, warnings, given)

    async def _answer(
        self,
        reviewer: Review,
        userinfo: Mapping[str, Any],
        warnings: list[str],
        given: Mapping[str, Any],
    ) -> None:
        review = _review(given.get("new"), given.get("old"), userinfo)
        running = asyncio.run_coroutine_threadsafe(reviewer(review), self.loop)
        result = await asyncio.wrap_future(running)
        if not isinstance(result, AdmissionAllowed):
            raise admission_refusal(result.status)
        warnings.extend(result.warnings)


def _review(
    new: Mapping[str, Any] | None, old: Mapping[str, Any] | None, user: Mapping[str, Any]
) -> JsonObject:
    request: JsonObject = {"object": _plain(new), "oldObject": _plain(old), "userInfo": {**user}}
    return {"request": request}


def _plain(view: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """kopf's view of an object as a dict: the validation rules test for that type."""
    return None if view is None else dict(view)


def build_host(
    process: OperatorProcess,
    settings: WebhookServerSettings,
    review: Review,
    review_deployment: Review | None = None,
) -> KopfHost:
    """To be called in the operator's loop."""
    is_reviewed = review_deployment is not None
    names = [PATH, DEPLOYMENT_PATH] if is_reviewed else [PATH]
    kinds = [WORKLOAD, DEPLOYMENT] if is_reviewed else [WORKLOAD]
    certificate = process.serve_certificate("webhook", settings.tls, settings.tls.client_ca)
    return KopfHost(
        Handlers(review, asyncio.get_running_loop(), review_deployment).register,
        Webhook(Bind(settings.host, settings.port), certificate, names, kinds),
        clock=process.clock,
        random=process.random,
        measures=process.metrics.measures,
    )
