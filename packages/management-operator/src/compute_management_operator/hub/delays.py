"""How long the hub controllers wait, each with its reason.

One page, because several controllers wait for the same thing: two values for one wait would make
one controller give up before the other has acted. Data.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# --- several controllers --------------------------------------------------------------------------

# An event enqueues the key before; this is for an event that was lost.
LOST_EVENT: Final = timedelta(seconds=30)
# Only a change helps, which enqueues the key: as long as a resync (management.md 2).
UNTIL_RESYNC: Final = timedelta(minutes=30)
# An object that is being deleted (management.md 4, steps 5 and 8; 5, step 3: "1 s steps").
STEP: Final = timedelta(seconds=1)
# A time in a cell's report may be ahead by so much: clocks differ (management.md 8.3).
LARGEST_CLOCK_SKEW: Final = timedelta(minutes=5)

# --- federation -----------------------------------------------------------------------------------

# The labels of a hub namespace may be corrected by hand without an event for the deployment.
IDENTITY_RETRY: Final = timedelta(seconds=60)
# At most 3 repairs of these labels within this time (management.md 4, step 6).
REPAIR_WINDOW: Final = timedelta(hours=1)
# A deletion that takes longer is reported (management.md 15, FederationReleaseDelayed).
RELEASE_LATE_AFTER: Final = timedelta(minutes=5)
# A new copy has no report yet; until then its status is left as it is (management.md 7).
REPORT_PATIENCE: Final = timedelta(seconds=60)
# Karmada backs off on the owner UID of a left-over binding; after this time the binding is stuck,
# and a longer wait does not help.
LONGEST_FOR_BINDING: Final = timedelta(seconds=60)
# A binding that is stuck for longer is not removed within `LONGEST_FOR_BINDING` either.
BINDING_FORGOTTEN_AFTER: Final = timedelta(minutes=10)

# --- hub namespaces -------------------------------------------------------------------------------

# A terminating namespace takes seconds, and its end enqueues nothing: namespaces of projects are
# not watched.
NAMESPACE_TERMINATING: Final = timedelta(seconds=5)
# Between the two live reads that show a source as gone; where many are gone at once, the time of
# the mass-delete guard.
BETWEEN_TWO_READS: Final = timedelta(seconds=20)

# --- projection -----------------------------------------------------------------------------------

# A deployment is deleted before the hub's garbage collection has removed its Instances, on every
# delete; an Instance without one is quarantined only after this time (management.md 8.1).
INSTANCE_PATIENCE: Final = timedelta(minutes=15)
