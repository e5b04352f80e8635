"""Plan of one deployment: Instances, repairs, network and gates as one decision. Pure (cell.md 3).

The status reports the same decision that is applied, so that a condition never names a step which
the plan did not take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from compute_api_types import labels, reasons
from compute_cell_operator.delays import RETRY_UNREAD_DATA, RETRY_UNREADABLE
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan.location import (
    Located,
    LocationUndecided,
    Resolution,
    WrongCity,
    location_name,
    resolve,
)
from compute_cell_operator.deployment.plan.new_instance import build_instance, refer_to_owner
from compute_cell_operator.deployment.plan.repairs import plan_gates, plan_repairs
from compute_cell_operator.deployment.plan.rollout import InstanceDemand, plan_instances
from compute_cell_operator.deployment.plan.steps import (
    CreateStep,
    HoldStep,
    Purpose,
    RemoveStep,
    Step,
    WaitStep,
)
from compute_cell_operator.deployment.slots import SlotInstance
from compute_cell_operator.network import plan as network
from compute_cell_operator.network.state import NetworkingState
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.intents.intents import (
    Delete,
    Intent,
    Plan,
    RecordEvent,
    RemoveFinalizer,
    RequeueAfter,
)

ACTION: Final = "ReconcilingInstances"

_REASONS: Final = {
    Purpose.SURPLUS: reasons.SURPLUS,
    Purpose.RECREATE: reasons.STALE_TEMPLATE,
    Purpose.DELETING: reasons.NOT_WANTED,
}


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan of a reconcile, and what it rests on."""

    resolution: Resolution
    steps: tuple[Step, ...]
    readiness: network.Readiness | None  # None: not evaluated in this reconcile
    plan: Plan


def decide(observed: ObservedDeployment) -> Decision:
    resolution = resolve(observed)
    demand = InstanceDemand(
        observed.desired,
        is_deleting=observed.is_deleting,
        is_wrong_city=isinstance(resolution, WrongCity),
        is_suspended=observed.is_suspended,
        is_data_awaited=observed.data is not None and not observed.data.is_complete,
    )
    steps = plan_instances(observed.slots, demand)
    acts = tuple(_carry_out(observed, steps, resolution))
    if observed.is_deleting:
        # No repair, network or wait: the garbage collector deletes what the deployment owns.
        return Decision(resolution, steps, None, Plan((*acts, *_retire_finalizers(observed))))
    if observed.is_suspended:
        # Location, network and gates stay as they are until the resume.
        kept = LocationUndecided(observed.status.location)
        return Decision(kept, steps, None, Plan((*acts, *plan_repairs(observed, kept))))
    planned = _plan_network(observed, resolution)
    readiness = planned.readiness if planned is not None else None
    gates = plan_gates(observed, resolution, readiness or network.NetworkWaiting(""))
    objects = planned.intents if planned is not None else ()
    waits = _waits(observed, resolution)
    plan = Plan((*acts, *plan_repairs(observed, resolution), *objects, *gates, *waits))
    return Decision(resolution, steps, readiness, plan)


def _carry_out(
    observed: ObservedDeployment, steps: tuple[Step, ...], resolution: Resolution
) -> Iterator[Intent]:
    for step in steps:
        match step:
            case CreateStep(ordinal):
                if observed.networking is NetworkingState.UNKNOWN:
                    continue  # whether it needs a Network gate is not known yet
                yield build_instance(
                    observed,
                    ordinal,
                    location=location_name(resolution),
                    has_network_gate=observed.networking is NetworkingState.ON,
                    has_data_gate=observed.data is not None,
                )
            case RemoveStep(instance, purpose):
                yield from _remove(observed, instance, purpose)
            case WaitStep() | HoldStep():
                continue  # the change they wait for enqueues the key
            case _:
                assert_never(step)


def _remove(
    observed: ObservedDeployment, instance: SlotInstance, purpose: Purpose
) -> Iterator[Intent]:
    removal = Delete(instance.key, instance.metadata.uid, _REASONS[purpose])
    yield removal
    if purpose is Purpose.RECREATE:
        yield RecordEvent(
            observed.key,
            observed.metadata.uid,
            reasons.INSTANCE_REPLACED,
            f'Instance "{instance.name}" is replaced to run the current template',
            ACTION,
            after=removal,
        )


def _retire_finalizers(observed: ObservedDeployment) -> Iterator[RemoveFinalizer]:
    """Finalizers of an older operator, which held the deployment until its Instances are gone."""
    if not observed.metadata.is_deleting or observed.owned:
        return
    for finalizer in labels.RETIRED_DEPLOYMENT_FINALIZERS:
        if finalizer in observed.metadata.finalizers:
            yield RemoveFinalizer(
                observed.key, observed.metadata.uid, finalizer, reasons.RETIRED_FINALIZER
            )


def _plan_network(
    observed: ObservedDeployment, resolution: Resolution
) -> network.NetworkPlan | None:
    if not isinstance(resolution, Located) or isinstance(observed.network, Unreadable):
        return None
    demand = network.NetworkDemand(
        observed.key,
        refer_to_owner(observed),
        resolution.name,
        max((instance.interfaces for instance in observed.owned), default=0),
    )
    return network.plan_network(observed.network, demand)


def _waits(observed: ObservedDeployment, resolution: Resolution) -> Iterator[RequeueAfter]:
    if observed.data is not None and observed.data.is_unread:
        yield RequeueAfter(observed.key, reasons.CACHE_NOT_SYNCED, RETRY_UNREAD_DATA)
    if isinstance(resolution, LocationUndecided) or isinstance(observed.network, Unreadable):
        yield RequeueAfter(observed.key, reasons.CACHE_NOT_SYNCED, RETRY_UNREADABLE)
