"""S19: every write says which controller it is of, by user agent and by field manager.

A plane's audit log has the one, `managedFields` the other; whoever asks "who did this" needs both,
and needs them to agree. The table is that of `docs/spec/management.md` 1.1 and `cell.md` 1, not of
the operators' own constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.history import History, Request
from e2e.backends.port import MANAGEMENT
from e2e.faults.layout import Layout

MANAGEMENT_AGENT: Final = "compute-management-operator"
CELL_AGENT: Final = "compute-cell-operator"
# A delete changes no field, so that it has no manager: the user agent is all there is.
MANAGED_VERBS: Final = frozenset({"create", "update", "patch"})


@dataclass(frozen=True, slots=True)
class Signed:
    """How the writes of one controller are signed."""

    user_agent: str
    field_manager: str


def _signed(agent: str, controller: str, manager: str) -> Signed:
    return Signed(f"{agent} ({controller})", manager)


SIGNATURES: Final = {
    MANAGEMENT_AGENT: (
        _signed(MANAGEMENT_AGENT, "workload", "compute-workload"),
        _signed(MANAGEMENT_AGENT, "federation", "compute-federation"),
        _signed(MANAGEMENT_AGENT, "policy", "compute-policy"),
        _signed(MANAGEMENT_AGENT, "projection", "compute-projection"),
        _signed(MANAGEMENT_AGENT, "hub-namespace", "compute-federation"),
        _signed(MANAGEMENT_AGENT, "claims", "compute-claims"),
        # What is of the process and of no controller carries the process's own name.
        _signed(MANAGEMENT_AGENT, "events", MANAGEMENT_AGENT),
        _signed(MANAGEMENT_AGENT, "leader-election", MANAGEMENT_AGENT),
    ),
    CELL_AGENT: (
        _signed(CELL_AGENT, "deployment", "compute-deployment"),
        _signed(CELL_AGENT, "instance", "compute-instance"),
        _signed(CELL_AGENT, "write-back", "compute-write-back"),
        Signed(CELL_AGENT, "compute-quota"),
        _signed(CELL_AGENT, "events", CELL_AGENT),
        _signed(CELL_AGENT, "leader-election", CELL_AGENT),
    ),
}


def audit_trail(history: History, layout: Layout) -> list[str]:
    """Every write of an operator that is not signed as its controller signs."""
    return [
        f"S19: {why}"
        for request in history.of(Request)
        if layout.is_operator(request.caller.identity) and request.address.is_write
        for why in _unsigned(request)
    ]


def _unsigned(request: Request) -> Iterator[str]:
    caller, address = request.caller, request.address
    operator = MANAGEMENT_AGENT if caller.identity == MANAGEMENT else CELL_AGENT
    told = f"{address.verb} {address.resource} {address.key} on {address.plane}"
    signature = next(
        (one for one in SIGNATURES[operator] if one.user_agent == caller.user_agent), None
    )
    if signature is None:
        yield f"{told} of {caller.identity} came from {caller.user_agent!r}"
        return
    if address.verb in MANAGED_VERBS and caller.field_manager != signature.field_manager:
        yield (
            f"{told}: {caller.user_agent!r} wrote as {caller.field_manager!r}, "
            f"not as {signature.field_manager!r}"
        )


def shown_signatures(history: History, layout: Layout) -> set[Signed]:
    """Which signatures were seen: a run says nothing about a controller that wrote nothing."""
    return {
        signature
        for request in history.of(Request)
        if layout.is_operator(request.caller.identity) and request.address.is_write
        for signatures in SIGNATURES.values()
        for signature in signatures
        if (signature.user_agent, signature.field_manager)
        == (request.caller.user_agent, request.caller.field_manager)
    }
