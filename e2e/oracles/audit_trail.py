"""S19: user agent and field manager of every write name the controller that sent it.

An audit log has the user agent, `managedFields` the field manager; they must agree to identify the
writer of a field. The table follows `docs/spec/management.md` 1.1 and `cell.md` 1 and not the
operators' own constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.history import History, Request
from e2e.oracles.layout import Layout
from e2e.world.port import MANAGEMENT

MANAGEMENT_AGENT: Final = "compute-management-operator"
CELL_AGENT: Final = "compute-cell-operator"
# A delete changes no field and has no field manager, only a user agent.
MANAGED_VERBS: Final = frozenset({"create", "update", "patch"})


@dataclass(frozen=True, slots=True)
class WriteSignature:
    """User agent and field manager of one controller."""

    user_agent: str
    field_manager: str


def _signed(agent: str, controller: str, manager: str) -> WriteSignature:
    return WriteSignature(f"{agent} ({controller})", manager)


SIGNATURES: Final = {
    MANAGEMENT_AGENT: (
        _signed(MANAGEMENT_AGENT, "workload", "compute-workload"),
        _signed(MANAGEMENT_AGENT, "federation", "compute-federation"),
        _signed(MANAGEMENT_AGENT, "policy", "compute-policy"),
        _signed(MANAGEMENT_AGENT, "projection", "compute-projection"),
        _signed(MANAGEMENT_AGENT, "hub-namespace", "compute-federation"),
        _signed(MANAGEMENT_AGENT, "claims", "compute-claims"),
        _signed(MANAGEMENT_AGENT, "referenced-data", "compute-referenced-data"),
        # Writes of the process, outside any controller, carry the process's own name.
        _signed(MANAGEMENT_AGENT, "events", MANAGEMENT_AGENT),
        _signed(MANAGEMENT_AGENT, "leader-election", MANAGEMENT_AGENT),
    ),
    CELL_AGENT: (
        _signed(CELL_AGENT, "deployment", "compute-deployment"),
        _signed(CELL_AGENT, "instance", "compute-instance"),
        _signed(CELL_AGENT, "write-back", "compute-write-back"),
        _signed(CELL_AGENT, "autoscaling", "compute-autoscaling"),
        _signed(CELL_AGENT, "heartbeat", "compute-heartbeat"),
        WriteSignature(CELL_AGENT, "compute-quota"),
        _signed(CELL_AGENT, "events", CELL_AGENT),
        _signed(CELL_AGENT, "leader-election", CELL_AGENT),
    ),
}


def audit_trail(history: History, layout: Layout) -> list[str]:
    """Writes of operators that do not carry their controller's signature."""
    return [
        f"S19: {why}"
        for request in history.of(Request)
        if layout.is_operator(request.caller.identity) and request.address.is_write
        for why in _unsigned(request)
    ]


def _unsigned(request: Request) -> Iterator[str]:
    caller, address = request.caller, request.address
    operator = MANAGEMENT_AGENT if caller.identity == MANAGEMENT else CELL_AGENT
    written = f"{address.verb} {address.resource} {address.key} on {address.plane}"
    signature = next(
        (one for one in SIGNATURES[operator] if one.user_agent == caller.user_agent), None
    )
    if signature is None:
        yield f"{written} of {caller.identity} came from {caller.user_agent!r}"
        return
    if address.verb in MANAGED_VERBS and caller.field_manager != signature.field_manager:
        yield (
            f"{written}: {caller.user_agent!r} wrote as {caller.field_manager!r}, "
            f"not as {signature.field_manager!r}"
        )


def shown_signatures(history: History, layout: Layout) -> set[WriteSignature]:
    """The signatures that occurred; a run shows nothing about a controller that did not write."""
    return {
        signature
        for request in history.of(Request)
        if layout.is_operator(request.caller.identity) and request.address.is_write
        for signatures in SIGNATURES.values()
        for signature in signatures
        if (signature.user_agent, signature.field_manager)
        == (request.caller.user_agent, request.caller.field_manager)
    }
