"""The status of an object as generic tools compute it: kstatus and `kubectl wait`.

`helm --wait`, Flux and others decide by kstatus. A status that these rules read as finished too
early lets a pipeline continue before the Workload runs. The rules for a kind that kstatus does not
know (cli-utils, package kstatus):

```
deletionTimestamp                                    Terminating
status.observedGeneration ≠ metadata.generation      InProgress
condition Reconciling is True                        InProgress
condition Stalled is True                            Failed
condition Ready: True → Current, anything else →     InProgress
no condition Ready                                   Current
```

Because of the last line an object needs a Ready condition from its creation on. `kubectl wait`
reads one condition and ignores it while its observedGeneration is older. Pure.
"""

from __future__ import annotations

from enum import StrEnum

from compute_api_types.wire import JsonObject
from e2e.world.objects import (
    condition_of,
    generation_of,
    is_deleting,
    objects_at,
    text_at,
    value_at,
)


class KStatus(StrEnum):
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    CURRENT = "Current"
    TERMINATING = "Terminating"


def derive_kstatus(document: JsonObject) -> KStatus:
    if is_deleting(document):
        return KStatus.TERMINATING
    observed = value_at(document, "status", "observedGeneration")
    if observed is not None and observed != generation_of(document):
        return KStatus.IN_PROGRESS
    if condition_of(document, "Reconciling").status == "True":
        return KStatus.IN_PROGRESS
    if condition_of(document, "Stalled").status == "True":
        return KStatus.FAILED
    is_ready = condition_of(document, "Ready").status in {"True", ""}
    return KStatus.CURRENT if is_ready else KStatus.IN_PROGRESS


def is_wait_over(document: JsonObject, condition: str) -> bool:
    """Whether `kubectl wait --for=condition=…` would return on this version."""
    for one in objects_at(document, "status", "conditions"):
        if text_at(one, "type").lower() != condition.lower():
            continue
        observed = value_at(one, "observedGeneration")
        if isinstance(observed, int) and observed < generation_of(document):
            return False
        return text_at(one, "status").lower() == "true"
    return False
