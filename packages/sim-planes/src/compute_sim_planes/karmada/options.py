"""Options of a simulated Karmada, which a test may change at any time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True)
class KarmadaOptions:
    """Delays and intervals. The defaults are those of Karmada's flags."""

    reconcile_delay: timedelta = timedelta(milliseconds=10)
    """From a change to its reconcile: an object passes six controllers on its way to a member."""

    retry_base_delay: timedelta = timedelta(milliseconds=5)
    """The first delay after a failure; each further one is twice as long."""

    retry_max_delay: timedelta = timedelta(seconds=1000)
    """The longest delay (`--rate-limiter-max-delay`)."""

    discovery_interval: timedelta = timedelta(seconds=30)
    """The period of the detector's discovery of new kinds."""

    health_interval: timedelta = timedelta(seconds=10)
    """The period of probes of a member (`--cluster-status-update-frequency`)."""

    success_threshold: timedelta = timedelta(seconds=30)
    """How long a member must be healthy to become Ready (`--cluster-success-threshold`)."""

    failure_threshold: timedelta = timedelta(seconds=30)
    """How long a member must be unhealthy to become not Ready (`--cluster-failure-threshold`)."""

    cleanup_interval: timedelta = timedelta(seconds=10)
    """The period of checks during the removal of a Cluster; Karmada has no flag for it."""

    member_timeout: timedelta = timedelta(seconds=32)
    """The timeout of requests to a member."""

    propagates_dependencies: bool = True
    """The hub gate `PropagateDeps`; the Helm chart of Karmada turns it off."""

    writes_events: bool = True
    """Whether Events are written; without them runs with thousands of objects are faster."""


def real_plane_options() -> KarmadaOptions:
    """The options with which the real planes are started (`docs/spec/neighbours.md` 4.3)."""
    two_seconds = timedelta(seconds=2)
    return KarmadaOptions(
        retry_max_delay=timedelta(seconds=10),
        health_interval=two_seconds,
        success_threshold=two_seconds,
        failure_threshold=two_seconds,
    )
