"""The registration controller at the root: activates ResourceRegistrations.

Claims of a resource type are admitted once its registration is active.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.reflector import RETRY, list_and_watch
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import Condition, derive_conditions
from compute_sim_planes.json_types import JsonObject, integer_at, object_at, string_at
from compute_sim_planes.milo.kinds import REGISTRATIONS
from compute_sim_planes.time.sources import Clock

MESSAGE: Final = (
    "The registration is active and resource grants and claims can now be created for this"
    " resource type."
)


def derive_status(registration: JsonObject, clock: Clock) -> JsonObject:
    generation = integer_at(registration, "metadata", "generation") or 1
    condition = Condition("Active", "True", "RegistrationActive", MESSAGE, generation)
    return {
        "conditions": derive_conditions(registration, condition, clock.now()),
        "observedGeneration": generation,
    }


async def activate_registrations(root: Client, clock: Clock) -> None:
    """Activate every registration, until cancelled."""
    async with aclosing(list_and_watch(root, REGISTRATIONS)) as changes:
        async for seen in changes:
            if not seen.is_deleted:
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
                # Deleted or changed meanwhile: the watch delivers the next event.
                return
        except OSError:
            pass
        else:
            return
        await asyncio.sleep(RETRY.total_seconds())
