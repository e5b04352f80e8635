"""The handlers kopf calls: process start and stop. With the kit's host the only module that knows
kopf.

The cell admits nothing, so there is no webhook here; probes are served by the operator's own loop,
which asks the host how kopf is doing. Handlers decide nothing; under virtual time nobody needs
them.
"""

from __future__ import annotations

import logging

import kopf

from compute_operator_kit.kopf_host import FrontDoor

logger = logging.getLogger(__name__)


async def start(**_: object) -> None:
    logger.info("Opening front door")


async def stop(**_: object) -> None:
    logger.info("Closing front door")


def register(registry: kopf.OperatorRegistry) -> None:
    kopf.on.startup(id="start", registry=registry)(start)
    kopf.on.cleanup(id="stop", registry=registry)(stop)


def open_front_door() -> FrontDoor:
    return FrontDoor(register, None)
