"""What tools that know nothing of our kinds make of an object: kstatus, and `kubectl wait`.

kstatus is how `helm --wait`, Flux and others decide; its rules for a kind they do not know, in our
words (cli-utils, package kstatus):

```
deletionTimestamp                                    Terminating
status.observedGeneration ≠ metadata.generation      InProgress
condition Reconciling is True                        InProgress
condition Stalled is True                            Failed
condition Ready: True → Current, anything else →     InProgress
no condition Ready                                   Current
```

The last line is why an object needs a Ready condition from its first moment on. `kubectl wait`
looks at one condition, and not at one that speaks of an older generation. Pure.
"""

from __future__ import annotations

from enum import StrEnum

from compute_api_types.wire import JsonObject
from e2e.objects import condition_of, generation_of, is_deleting, objects_at, text_at, value_at


class Verdict(StrEnum):
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    CURRENT = "Current"
    TERMINATING = "Terminating"


def derive_kstatus(found: JsonObject) -> Verdict:
    if is_deleting(found):
        return Verdict.TERMINATING
    observed = value_at(found, "status", "observedGeneration")
    if observed is not None and observed != generation_of(found):
        return Verdict.IN_PROGRESS
    if condition_of(found, "Reconciling").status == "True":
        return Verdict.IN_PROGRESS
    if condition_of(found, "Stalled").status == "True":
        return Verdict.FAILED
    is_ready = condition_of(found, "Ready").status in {"True", ""}
    return Verdict.CURRENT if is_ready else Verdict.IN_PROGRESS


def is_wait_over(found: JsonObject, condition: str) -> bool:
    """Whether `kubectl wait --for=condition=…` returns on seeing this version."""
    for one in objects_at(found, "status", "conditions"):
        if text_at(one, "type").lower() != condition.lower():
            continue
        observed = value_at(one, "observedGeneration")
        if isinstance(observed, int) and observed < generation_of(found):
            return False
        return text_at(one, "status").lower() == "true"
    return False
