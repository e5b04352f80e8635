"""The handlers kopf calls: process start and stop, and admission. With the kit's host the only
module that knows kopf.

kopf runs in a thread and a loop of its own. The caches that decide an admission belong to the
operator's loop and are never touched from here: a review is handed over and its answer awaited.
Handlers decide nothing; under virtual time nobody needs them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import kopf

from compute_management_operator.admission.review import Admitted, Answer
from compute_management_operator.kinds import WORKLOAD
from compute_operator_kit.kopf_host import FrontDoor, Webhook, admission_refusal
from compute_operator_kit.wire import JsonObject

PATH: Final = "validate-compute-datumapis-com-v1alpha-workload"  # api.md 12.1, without the slash
Judge: TypeAlias = Callable[[JsonObject], Coroutine[Any, Any, Answer]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handlers:
    """What kopf is given; `loop` is the operator's."""

    judge: Judge
    loop: asyncio.AbstractEventLoop
    has_webhook: bool

    def register(self, registry: kopf.OperatorRegistry) -> None:
        kopf.on.startup(id="start", registry=registry)(self.start)
        kopf.on.cleanup(id="stop", registry=registry)(self.stop)
        if self.has_webhook:
            kopf.on.validate(
                WORKLOAD.group, WORKLOAD.version, WORKLOAD.plural, id=PATH, registry=registry
            )(self.validate)

    async def start(self, **_: object) -> None:
        logger.info("Opening front door", extra={"webhook": self.has_webhook})

    async def stop(self, **_: object) -> None:
        logger.info("Closing front door")

    async def validate(
        self,
        *,
        userinfo: Mapping[str, Any],
        warnings: list[str],
        **given: Any,  # noqa: ANN401 - whatever kopf has to say; of it only the objects are read
    ) -> None:
        review = _review(given.get("new"), given.get("old"), userinfo)
        asked = asyncio.run_coroutine_threadsafe(self.judge(review), self.loop)
        answer = await asyncio.wrap_future(asked)
        if not isinstance(answer, Admitted):
            raise admission_refusal(answer.status)
        warnings.extend(answer.warnings)


def _review(
    wanted: Mapping[str, Any] | None, found: Mapping[str, Any] | None, user: Mapping[str, Any]
) -> JsonObject:
    request: JsonObject = {
        "object": _plain(wanted),
        "oldObject": _plain(found),
        "userInfo": {**user},
    }
    return {"request": request}


def _plain(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """kopf's views as what they are views of: the rules tell documents by their types."""
    return None if found is None else dict(found)


def open_front_door(judge: Judge, webhook: Webhook | None) -> FrontDoor:
    """To be called in the operator's loop."""
    handlers = Handlers(judge, asyncio.get_running_loop(), webhook is not None)
    return FrontDoor(handlers.register, webhook)
