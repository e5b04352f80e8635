"""Two deployments of a recorded installation of the Go operators, planted into a simulated world.

`api-p-dfw` runs its two Instances. `extra-p-dfw` wants three: one runs, one waits for quota, and
the budget of three is used up. Planes give new UIDs, so recorded ones are replaced by those.
"""

from __future__ import annotations

from typing import Final

import orjson

from cell_builders.documents import PROJECT_NAMESPACE
from cell_builders.quota_scenes import milo_of, times
from cell_builders.recording import recorded
from cell_builders.world import World, name_of, status_of, uid_of
from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE
from compute_operator_kit.core.json import JsonObject, member_object
from compute_sim_planes.milo.kinds import CLAIMS

RUNNING: Final = ("api-p-dfw-0", "api-p-dfw-1", "extra-p-dfw-0")
WAITING: Final = "extra-p-dfw-1"
BUDGET: Final = times(len(RUNNING))


class Installation:
    """Plants recorded objects."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._uids: dict[bytes, bytes] = {}

    async def plant(self) -> None:
        """Everything but claims: the Namespaces are there, no operator runs yet."""
        for document in recorded("hub", DEPLOYMENT.kind):
            await self._make(HUB, document)
        for document in recorded("cell", DEPLOYMENT.kind):
            await self._make(CELL, document)
        for document in recorded("cell", INSTANCE.kind):
            await self._make(CELL, document)
        for document in recorded("hub", INSTANCE.kind):
            await self._make(HUB, document)

    async def claim(self) -> None:
        """The claims, granted and denied as they were: in the order in which they were made."""
        found = recorded("project", CLAIMS.kind)
        for document in sorted(found, key=lambda one: name_of(one).endswith(WAITING)):
            metadata = member_object(document, "metadata")
            kept = {key: metadata[key] for key in ("name", "labels")}
            await (
                milo_of(self._world)
                .inside()
                .create(
                    CLAIMS,
                    {
                        "apiVersion": document["apiVersion"],
                        "kind": document["kind"],
                        "metadata": {**kept, "namespace": PROJECT_NAMESPACE},
                        "spec": document["spec"],
                    },
                )
            )
            await self._world.sleep(1)

    async def _make(self, plane: str, document: JsonObject) -> None:
        old, kind = uid_of(document).encode(), document["kind"]
        text = orjson.dumps(document)
        for known, new in self._uids.items():
            text = text.replace(known, new)
        wanted: JsonObject = orjson.loads(text)
        status = status_of(wanted)
        del member_object(wanted, "metadata")["resourceVersion"]
        made = await self._world.create(plane, wanted)
        self._uids[old] = uid_of(made).encode()
        chosen = DEPLOYMENT if kind == DEPLOYMENT.kind else INSTANCE
        await self._world.set_status(plane, chosen, name_of(wanted), status)
