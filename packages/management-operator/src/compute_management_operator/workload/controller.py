"""The Workload controller, assembled: what wakes it, what it reads, and its steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels
from compute_management_operator.assembly import RESYNC, RETRY, TEMPO, Tools
from compute_management_operator.kinds import DEPLOYMENT, LOCATION, NETWORK, WORKLOAD
from compute_management_operator.networking import LOCATION_INDEXES, Consulting, Networking
from compute_management_operator.networking_switch import NetworkingSwitch
from compute_management_operator.outlines import DEPLOYMENT_OUTLINE, WORKLOAD_OUTLINE
from compute_management_operator.workload import mapping, observe, plan
from compute_management_operator.workload.behind import is_behind
from compute_management_operator.workload.observe import FindHubNamespace, Seen
from compute_management_operator.workload.status.report import rejections, report, tell_rejection
from compute_operator_kit.cache import Caches
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.intents import Plan
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.parts import Part
from compute_operator_kit.planes import Watched
from compute_operator_kit.reconcile import Pass, Result, pay_owed, run_steps
from compute_operator_kit.workqueue import Priority

NAME: Final = "workload"
WRITER: Final = Writer(NAME, labels.WORKLOAD_MANAGER)


class Rejections:
    """Refusals that people have been told of: one event per state, not one per attempt.

    Nothing that is stored says that a deployment was refused, so this is remembered here; a restart
    tells once more.
    """

    def __init__(self) -> None:
        self._told: dict[ObjectKey, dict[str, tuple[int, str]]] = {}

    def tell(self, seen: Seen, applied: Applied) -> Plan:
        """Events for what is refused now and was not, or was in another generation."""
        generation = seen.metadata.generation
        refused = {name: (generation, why) for name, why in rejections(applied).items()}
        before = self._told.pop(seen.key, {})
        if refused:
            self._told[seen.key] = refused
        fresh = (why for name, (_, why) in refused.items() if before.get(name) != refused[name])
        return Plan(tuple(tell_rejection(seen, why) for why in fresh))

    def forget(self, key: ObjectKey) -> None:
        self._told.pop(key, None)


@dataclass(frozen=True, slots=True)
class WorkloadSteps:
    """The three files of the folder, as the kit calls them."""

    consulting: Consulting
    told: Rejections
    find_hub_namespace: FindHubNamespace

    def observe(self, key: ObjectKey, caches: Caches) -> Seen | None:
        seen = observe.observe(key, caches, self.consulting, self.find_hub_namespace)
        if seen is None:
            self.told.forget(key)
        return seen

    def plan(self, seen: Seen, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        return plan.leave_out_events(seen, plan.plan(seen))

    def report(self, seen: Seen, applied: Applied, now: datetime) -> Plan:
        told = report(seen, applied, now) + self.told.tell(seen, applied)
        return plan.leave_out_events(seen, told)


def build(
    tools: Tools,
    networking: NetworkingSwitch,
    find_hub_namespace: FindHubNamespace = observe.find_none,
) -> Part:
    steps = WorkloadSteps(networking.consulting, Rejections(), find_hub_namespace)

    async def reconcile(key: ObjectKey, work: Pass) -> Result:
        return await (pay_owed(work) if work.owed else run_steps(steps, key, work))

    def wake_all(plane: PlaneName) -> None:
        for key in mapping.wake_workloads(plane, tools.reach.caches):
            # Nothing of a Workload changed: its users' edits go before.
            tools.reach.wake(NAME, key, Priority.BACKGROUND)

    networking.tell(wake_all)
    controller = Controller(
        name=NAME,
        writer=WRITER,
        watches=(*OWN_WATCHES, *(NETWORKING_WATCHES if networking.is_consulted else ())),
        reconcile=reconcile,
        on_engaged=mapping.wake_workloads,
        is_behind=is_behind,
        tempo=TEMPO,
        retry=RETRY,
        resync=RESYNC,
        deadline=tools.settings.clients.reconcile_timeout,
    )
    return Part(
        controller=controller,
        watched=(*_own_caches(), *_networking_caches(networking.consulting.setting)),
        listeners=(networking,) if networking.is_consulted else (),
    )


OWN_WATCHES: Final = (
    Watch(Role.PROJECT, WORKLOAD),
    Watch(Role.PROJECT, DEPLOYMENT, mapping.map_deployment),
)
# Not needed: an unreadable list must keep nobody from being updated, told of or finalized.
NETWORKING_WATCHES: Final = (
    Watch(Role.PROJECT, LOCATION, mapping.map_location, is_needed=False),
    Watch(Role.PROJECT, NETWORK, mapping.map_network, is_needed=False),
)


def _own_caches() -> Iterable[Watched]:
    yield Watched(
        Role.PROJECT, WORKLOAD, indexes=mapping.WORKLOAD_INDEXES, outline=WORKLOAD_OUTLINE
    )
    yield Watched(
        Role.PROJECT, DEPLOYMENT, indexes=mapping.DEPLOYMENT_INDEXES, outline=DEPLOYMENT_OUTLINE
    )


def _networking_caches(setting: Networking) -> Iterable[Watched]:
    if setting is Networking.OFF:
        return
    is_optional = setting is Networking.AUTO
    yield Watched(
        Role.PROJECT,
        LOCATION,
        indexes=LOCATION_INDEXES,
        is_optional=is_optional,
        keeps_bodies=False,
    )
    yield Watched(Role.PROJECT, NETWORK, is_optional=is_optional, keeps_bodies=False)
