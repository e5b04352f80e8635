"""The deployment controller, assembled: what wakes it, what it reads, and its steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels
from compute_cell_operator.assembly import Tools
from compute_cell_operator.deployment import mapping, observe, status
from compute_cell_operator.deployment.observe import Seen, Surroundings
from compute_cell_operator.deployment.plan.decision import Decision, decide
from compute_cell_operator.deployment.revisions import Revisions
from compute_cell_operator.kinds import (
    DEPLOYMENT,
    INSTANCE,
    LOCATION,
    NAMESPACE,
    NETWORK_BINDING,
    NETWORK_CONTEXT,
    SUBNET,
    SUBNET_CLAIM,
)
from compute_cell_operator.network.caches import WATCHED as NETWORKING_WATCHED
from compute_cell_operator.network.switch import Switch
from compute_cell_operator.retries import RETRY
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.cache import Caches
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.intents import Plan
from compute_operator_kit.keys import ObjectKey, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.parts import Part
from compute_operator_kit.planes import Watched
from compute_operator_kit.reconcile import Pass, Result, run_steps

NAME: Final = "deployment"
WRITER: Final = Writer(NAME, labels.DEPLOYMENT_MANAGER)
RESYNC: Final = timedelta(minutes=10)  # cell.md 2


@dataclass(slots=True)
class DeploymentSteps:
    """The three files of the folder, as the kit calls them, for one pass: what was decided is told
    in the same pass, and is not decided twice.
    """

    settings: CellSettings
    networking: Switch
    revisions: Revisions
    _decision: Decision | None = None

    def observe(self, key: ObjectKey, caches: Caches) -> Seen | None:
        if not self.settings.is_in_scope(key.namespace):
            return None
        around = Surroundings(self.networking.state, self.settings.cell.city_code, self.revisions)
        return observe.observe(key, caches, around)

    def plan(self, seen: Seen, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        self._decision = decide(seen)
        return self._decision.plan

    def report(self, seen: Seen, applied: Applied, now: datetime) -> Plan:
        return status.report(seen, self._decision or decide(seen), applied, now)


def build(tools: Tools) -> Part:
    revisions = Revisions()

    async def reconcile(key: ObjectKey, work: Pass) -> Result:
        steps = DeploymentSteps(tools.settings, tools.networking, revisions)
        return await run_steps(steps, key, work)

    def wake_all() -> None:
        for key in mapping.wake_all(tools.reach.caches):
            tools.reach.wake(NAME, key)

    is_consulted = tools.networking.is_consulted
    tools.networking.tell(wake_all)
    controller = Controller(
        name=NAME,
        writer=WRITER,
        watches=(*OWN_WATCHES, *(NETWORKING_WATCHES if is_consulted else ())),
        reconcile=reconcile,
        share=lambda key, _: key.namespace,
        resync=RESYNC,
        retry=RETRY,
        deadline=tools.settings.clients.reconcile_timeout,
        dropped_metric="compute_cell_dropped_events_total",
    )
    return Part(
        controller=controller,
        watched=(*OWN_WATCHED, *(NETWORKING_WATCHED if is_consulted else ())),
    )


OWN_WATCHES: Final = (
    Watch(Role.HOME, DEPLOYMENT),
    Watch(Role.HOME, INSTANCE, mapping.map_instance),
    Watch(Role.HOME, NAMESPACE, mapping.map_namespace),
)
# Not needed: what cannot be read is a value, and deleting and scaling down go on without it.
NETWORKING_WATCHES: Final = (
    Watch(Role.HOME, LOCATION, mapping.map_location, is_needed=False),
    Watch(Role.HOME, NETWORK_BINDING, mapping.map_binding, is_needed=False),
    Watch(Role.HOME, NETWORK_CONTEXT, mapping.map_context, is_needed=False),
    Watch(Role.HOME, SUBNET_CLAIM, mapping.map_subnet, is_needed=False),
    Watch(Role.HOME, SUBNET, mapping.map_subnet, is_needed=False),
)
OWN_WATCHED: Final = (
    Watched(Role.HOME, DEPLOYMENT, indexes=mapping.DEPLOYMENT_INDEXES),
    Watched(Role.HOME, INSTANCE, indexes=mapping.INSTANCE_INDEXES),
    Watched(Role.HOME, NAMESPACE),
)
