"""Delays of the pod provider, each with its reason. Data."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# A pass that reads Instance and Pod live: kopf does not notice what vanished in a watch gap.
RESYNC: Final = timedelta(minutes=10)
RESYNC_SPREAD: Final = 0.2
# A Pod of the name that is not ours may go at any time, and no event of it reaches us.
TAKEN_RETRY: Final = timedelta(seconds=15)
REFUSED_RETRY: Final = timedelta(minutes=5)  # a policy or webhook may have changed
QUOTA_RETRY: Final = timedelta(seconds=30)
# Pods made again: at once, then 10 s doubling to 5 min, as kubelet restarts containers.
RECREATE_FIRST: Final = timedelta(seconds=10)
RECREATE_LONGEST: Final = timedelta(minutes=5)
RECREATE_FORGOTTEN: Final = timedelta(minutes=10)  # of Available
MOUNT_EVENTS: Final = timedelta(seconds=60)  # between two lists of a Pod's Events
# Failed passes.
ERROR_FIRST: Final = timedelta(seconds=1)
ERROR_LONGEST: Final = timedelta(seconds=60)
OWN_WRITE: Final = timedelta(seconds=1)  # until the index has our own write
TEARDOWN_READ: Final = timedelta(seconds=5)  # live reads while a Pod goes
TEARDOWN_STUCK: Final = timedelta(minutes=5)  # past the grace period: one event
LOST_TEARDOWN: Final = timedelta(seconds=60)  # kopf gives a PATCH up after nine attempts
SWEEP: Final = timedelta(seconds=60)
SERVED_CHECK: Final = timedelta(seconds=10)  # whether the cluster serves Instances at all
LOGIN: Final = timedelta(minutes=10)  # a service account token is read again
