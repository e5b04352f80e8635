"""Registrations become active: from then on claims of their resource types are admitted.

Over the neighbours' client port, at the root.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.client import Client
from compute_sim_planes.client_errors import ApiError
from compute_sim_planes.following import RETRY, follow
from compute_sim_planes.json_types import JsonObject, integer_at, object_at, string_at
from compute_sim_planes.milo.conditions import Finding, derive_conditions
from compute_sim_planes.milo.kinds import REGISTRATIONS

MESSAGE: Final = (
    "The registration is active and resource grants and claims can now be created for this"
    " resource type."
)


def derive_status(registration: JsonObject, clock: Clock) -> JsonObject:
    generation = integer_at(registration, "metadata", "generation") or 1
    finding = Finding("Active", "True", "RegistrationActive", MESSAGE, generation)
    return {
        "conditions": derive_conditions(registration, finding, clock.now()),
        "observedGeneration": generation,
    }


async def activate_registrations(root: Client, clock: Clock) -> None:
    """Makes every registration active, until it is cancelled."""
    async with aclosing(follow(root, REGISTRATIONS)) as changes:
        async for seen in changes:
            if not seen.is_gone:
                await _activate(root, seen.object, clock)


async def _activate(root: Client, registration: JsonObject, clock: Clock) -> None:
    status = derive_status(registration, clock)
    if object_at(registration, "status") == status:
        return
    name = string_at(registration, "metadata", "name")
    while True:
        try:
            await root.patch(REGISTRATIONS, name, {"status": status}, subresource="status")
        except ApiError as refused:
            if refused.status in {404, 422}:
                # Gone meanwhile, or not what it was: the watch tells.
                return
        except OSError:
            pass
        else:
            return
        await asyncio.sleep(RETRY.total_seconds())
