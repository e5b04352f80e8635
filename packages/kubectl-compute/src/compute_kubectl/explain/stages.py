"""The twelve stages that a WorkloadDeployment passes from a project to a running Instance and back.

Each has the controller that brings it about, the time it normally takes and the metric that shows
why it does not. A stage without an owner would end a diagnosis in "something is slow".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Stage(IntEnum):
    """The stages in their order (docs/spec/kubectl-compute.md 3)."""

    PLANNED = 1
    PLACED = 2
    FEDERATED = 3
    CLAIMED = 4
    SCHEDULED = 5
    APPLIED = 6
    DELIVERED = 7
    ACTED_ON = 8
    RELEASED = 9
    RUNNING = 10
    REPORTED = 11
    SHOWN = 12

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", " ")


class Owner:
    """Names of what brings a stage about, as documents and logs spell them."""

    USER: Final = "you"
    PLATFORM: Final = "platform"
    WORKLOAD: Final = "management / workload"
    FEDERATION: Final = "management / federation"
    POLICY: Final = "management / policy"
    PROJECTION: Final = "management / projection"
    KARMADA: Final = "Karmada"
    DEPLOYMENT: Final = "cell / deployment"
    INSTANCE: Final = "cell / instance"
    WRITE_BACK: Final = "cell / write-back"
    NETWORK: Final = "network services"
    QUOTA: Final = "quota service"
    PROVIDER: Final = "provider"


@dataclass(frozen=True, slots=True)
class StageFacts:
    """Owner, time limit and metric of one stage."""

    owner: str
    within: timedelta
    metric: str


def _seconds(number: int) -> timedelta:
    return timedelta(seconds=number)


_PENDING: Final = 'compute_oldest_pending_seconds{{controller="{}"}}'

STAGES: Final[Mapping[Stage, StageFacts]] = MappingProxyType(
    {
        Stage.PLANNED: StageFacts(
            Owner.WORKLOAD,
            _seconds(5),
            'controller_runtime_reconcile_errors_total{controller="workload"}',
        ),
        Stage.PLACED: StageFacts(Owner.FEDERATION, _seconds(5), _PENDING.format("federation")),
        Stage.FEDERATED: StageFacts(Owner.FEDERATION, _seconds(10), _PENDING.format("federation")),
        Stage.CLAIMED: StageFacts(
            Owner.POLICY, _seconds(10), "compute_federation_policy_writes_total"
        ),
        Stage.SCHEDULED: StageFacts(
            Owner.KARMADA, _seconds(15), "karmada_scheduler_schedule_attempts_total"
        ),
        Stage.APPLIED: StageFacts(Owner.KARMADA, _seconds(30), "cluster_ready_state"),
        Stage.DELIVERED: StageFacts(Owner.KARMADA, _seconds(30), "cluster_ready_state"),
        Stage.ACTED_ON: StageFacts(
            Owner.DEPLOYMENT,
            _seconds(15),
            'controller_runtime_reconcile_errors_total{controller="deployment"}',
        ),
        Stage.RELEASED: StageFacts(
            Owner.INSTANCE,
            _seconds(30),
            'controller_runtime_reconcile_errors_total{controller="instance"}',
        ),
        Stage.RUNNING: StageFacts(Owner.PROVIDER, timedelta(minutes=30), "of the provider"),
        Stage.REPORTED: StageFacts(Owner.WRITE_BACK, _seconds(30), _PENDING.format("write-back")),
        Stage.SHOWN: StageFacts(Owner.PROJECTION, _seconds(15), _PENDING.format("projection")),
    }
)

NETWORK_WITHIN: Final = timedelta(minutes=15)
"""How long a network may take to be set up in a city; the other gates have the stage's limit."""
