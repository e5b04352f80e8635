"""How long referenced data is waited for, each with its reason. Data."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# A deployment is written without its annotations after this time (referenced-data.md 4): a source
# that does not answer must not keep the template from its cells.
VERDICT_PATIENCE: Final = timedelta(seconds=2)
# A foreign object on the hub is not watched: its removal enqueues nothing (referenced-data.md 3).
NAME_TAKEN_RETRY: Final = timedelta(minutes=5)
# A key with a verdict that can be better soon, after its read failed; the error itself backs off.
READ_RETRY: Final = timedelta(seconds=5)
# Objects that may not be read are asked for again this far apart, per project: a right that was
# granted enqueues nothing, and a thousand refused objects must not take the requests of the others.
REFUSED_READS_APART: Final = timedelta(seconds=0.5)
# A copy that waits for its data for longer has its binding read (referenced-data.md 5): Karmada
# delivers within seconds, a cell that starts within a minute.
DISTRIBUTION_PATIENCE: Final = timedelta(minutes=5)
# The end of it, and with it of the alert, is seen as late as this.
DISTRIBUTION_RECHECK: Final = timedelta(minutes=5)
# Reads of sources for one deployment at a time (referenced-data.md 4).
MOST_READS_AT_ONCE: Final = 8
