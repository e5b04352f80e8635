"""All that the instance pass and the quota worker know of each other.

```
instance pass  ── finding(key) ──►  Gate   what the worker has found out; never waits
               ── look(key)    ──►         its time has come again (quota.md B5)
worker         ── tell(key)    ──►  the instance pass of that name, when a finding has changed
```

The worker is level-triggered like everything else: it is told a name and reads for itself, from the
cell's caches and live, whether an Instance is there, how large it is and whether its slot is
wanted. Watches of its own (Instances, deployments, Namespaces) wake it too, so that nobody has to
remember what it looks after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from compute_cell_operator.quota_gate.findings import Finding
from compute_operator_kit.keys import ObjectKey

Tell: TypeAlias = Callable[[ObjectKey], None]
"""Has the Instance of this key looked at; as often as one likes."""


class Gate(Protocol):
    """The worker, as the instance pass sees it."""

    def finding(self, instance: ObjectKey) -> Finding | None:
        """The last finding for an Instance of this name; whom it holds for is in it."""
        ...

    def look(self, instance: ObjectKey) -> None:
        """Has the claim of this name looked at, if anything could be news; costs nothing else."""
        ...


class NoGate:
    """Quota is switched off: nothing is found, and nobody looks."""

    def finding(self, instance: ObjectKey) -> Finding | None:  # noqa: ARG002
        return None

    def look(self, instance: ObjectKey) -> None:
        pass
