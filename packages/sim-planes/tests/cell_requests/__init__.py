"""Requests of cells and their outcomes: one table for simulated and real servers.

Each row is one request on one object. The users in the table have every RBAC permission on the
kind, so only the policy can refuse.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from compute_api_types import labels

Verb = Literal["create", "apply", "replace", "patch", "status", "delete", "delete_all"]
Labels = dict[str, str]

DFW: Final = "compute:cell:dfw-1"
NOBODY: Final = "compute:cell:"
NO_CELL: Final = "the user names no cell"
ELSEWHERE: Final = "a cell writes Instances only in namespaces of projects (ns-…)"


@dataclass(frozen=True, slots=True)
class Guard:
    """A policy and its kind."""

    policy: str
    label: str
    kind: str
    # The name of a row's object, and labels that it needs besides the checked one.
    name: str = "one"
    links: Labels = field(default_factory=dict[str, str])

    @property
    def not_own(self) -> str:
        return f"label {self.label} must name the cell that writes"

    @property
    def not_yours(self) -> str:
        return f"the {self.kind} belongs to another cell"


MANAGEMENT: Final = "system:serviceaccount:compute-system:compute-management-operator"
ZRH: Final = "compute:cell:zrh-1"
INSTANCES: Final = Guard(
    "compute-cell-instances",
    labels.CELL,
    "Instance",
    name="one-0",
    links={labels.WORKLOAD_DEPLOYMENT_NAME: "one"},
)
SLOT: Final = "instance-one-0"
CLAIMS: Final = Guard("compute-cell-claims", labels.SOURCE_CLUSTER, "ResourceClaim", name=SLOT)
# Resource types of claims: compute's own, and another service's.
OURS: Final = "compute.datumapis.com/instances"
THEIRS: Final = "storage.example.com/gib"
NAME_FORM: Final = "the name of a cell's ResourceClaim must be instance-<Instance name>"
NOT_OURS: Final = "a cell's ResourceClaim must ask for compute.datumapis.com/* alone"
OTHER_SERVICE: Final = "the ResourceClaim belongs to another service"


@dataclass(frozen=True, slots=True)
class Row:
    """One request; `refused` is the policy's message, empty where it admits the request."""

    title: str
    guard: Guard
    user: str
    verb: Verb
    # None: the object does not exist yet, or the request has no body.
    existing: Labels | None = None
    desired: Labels | None = None
    in_project: bool = True
    refused: str = ""
    name: str = ""  # different from the guard's
    full: str = ""  # the annotation with the full name of the deployment
    # Resource types of the existing claim, and of the one in the request.
    existing_requests: tuple[str, ...] = (OURS,)
    desired_requests: tuple[str, ...] = (OURS,)


def _rows(guard: Guard) -> tuple[Row, ...]:
    own, other = {guard.label: "dfw-1", **guard.links}, {guard.label: "ord-1"}
    empty: Labels = {guard.label: ""}
    foreign = {"somebody.example.com/else": "dfw-1"}
    not_own, not_yours = guard.not_own, guard.not_yours
    return (
        # A new object must name the cell.
        Row("create, own", guard, DFW, "create", None, own),
        Row("create, own, by apply", guard, DFW, "apply", None, own),
        Row("create, another's", guard, DFW, "create", None, other, refused=not_own),
        Row("create, another's, by apply", guard, DFW, "apply", None, other, refused=not_own),
        Row("create, nobody's", guard, DFW, "create", None, {}, refused=not_own),
        Row("create, empty label", guard, DFW, "create", None, empty, refused=not_own),
        Row("create, other labels", guard, DFW, "create", None, foreign, refused=not_own),
        Row(
            "create, name as a prefix",
            guard,
            DFW,
            "create",
            None,
            {guard.label: "dfw-10"},
            refused=not_own,
        ),
        Row(
            "create, other case",
            guard,
            DFW,
            "create",
            None,
            {guard.label: "DFW-1"},
            refused=not_own,
        ),
        # Before and after an update the object must name the cell; one without a cell is adopted.
        Row("replace own", guard, DFW, "replace", own, own),
        Row("patch own", guard, DFW, "patch", own, own),
        Row("apply over own", guard, DFW, "apply", own, own),
        Row("adopt nobody's", guard, DFW, "patch", {}, own),
        Row("adopt an empty label", guard, DFW, "patch", empty, own),
        Row("adopt nobody's by apply", guard, DFW, "apply", {}, own),
        Row("leave nobody's as it is", guard, DFW, "replace", {}, {}, refused=not_own),
        Row("take another's", guard, DFW, "patch", other, own, refused=not_yours),
        Row("take another's by apply", guard, DFW, "apply", other, own, refused=not_yours),
        Row("change another's", guard, DFW, "replace", other, other, refused=not_own),
        Row("give own away", guard, DFW, "patch", own, other, refused=not_own),
        Row("drop the label of own", guard, DFW, "replace", own, {}, refused=not_own),
        # A status write cannot change labels: the server restores metadata first.
        Row("status of own", guard, DFW, "status", own, own),
        Row("status of own, forged label", guard, DFW, "status", own, other),
        Row("status of another's", guard, DFW, "status", other, other, refused=not_own),
        Row("status of another's, forged", guard, DFW, "status", other, own, refused=not_own),
        Row("status of nobody's", guard, DFW, "status", {}, own, refused=not_own),
        # A delete has no new object.
        Row("delete own", guard, DFW, "delete", own),
        Row("delete nobody's", guard, DFW, "delete", {}),
        Row("delete an empty label", guard, DFW, "delete", empty),
        Row("delete another's", guard, DFW, "delete", other, refused=not_yours),
        Row("delete all, own", guard, DFW, "delete_all", own),
        Row("delete all, another's", guard, DFW, "delete_all", other, refused=not_yours),
        # Users without the prefix of cells are not covered; the prefix alone is not a cell.
        Row("no cell name, create", guard, NOBODY, "create", None, empty, refused=NO_CELL),
        Row("no cell name, delete", guard, NOBODY, "delete", {}, refused=NO_CELL),
        Row("another user, create", guard, "system:admin", "create", None, other),
        Row("another user, delete", guard, "system:admin", "delete", other),
        Row("a user named alike", guard, "compute:cells:dfw-1", "patch", other, own),
    )


NOT_A_SLOT: Final = (
    "the name must be <deployment>-<ordinal> of the deployment in label "
    f"{labels.WORKLOAD_DEPLOYMENT_NAME}"
)
LONG: Final = "l" * 80


def _slots() -> tuple[Row, ...]:
    """Names of copies against the deployment in their label."""

    def named(title: str, deployment: str, name: str, *, full: str = "", refused: str = "") -> Row:
        carried = {labels.CELL: "dfw-1", labels.WORKLOAD_DEPLOYMENT_NAME: deployment}
        return Row(
            title, INSTANCES, DFW, "create", None, carried, refused=refused, name=name, full=full
        )

    own: Labels = {labels.CELL: "dfw-1", **INSTANCES.links}
    moved: Labels = {labels.CELL: "dfw-1", labels.WORKLOAD_DEPLOYMENT_NAME: "two"}
    bare: Labels = {labels.CELL: "dfw-1"}
    no = NOT_A_SLOT
    return (
        named("slot 0", "web-dfw", "web-dfw-0"),
        named("slot 1234567890", "web-dfw", "web-dfw-1234567890"),
        named("dots in a name", "web.dfw", "web.dfw-0"),
        named("slot of another deployment", "web-dfw", "web-ord-0", refused=no),
        named("slot of a longer name", "web", "web-ord-0", refused=no),
        named("a pattern as a name", "web.x", "webzx-0", refused=no),
        named("leading zero", "web-dfw", "web-dfw-00", refused=no),
        named("no ordinal", "web-dfw", "web-dfw", refused=no),
        named("ordinal too long", "web-dfw", "web-dfw-12345678901", refused=no),
        named("no deployment", "", "one-0", refused=no),
        named("full name beside a short label", "llll", f"{LONG}-0", full=LONG),
        named("full name that fits a label", "web-dfw", "web-ord-0", full="web-ord", refused=no),
        Row("patch to another deployment", INSTANCES, DFW, "patch", own, moved, refused=no),
        Row("replace without deployment", INSTANCES, DFW, "replace", own, bare, refused=no),
        Row("delete what is no slot", INSTANCES, DFW, "delete", bare),
    )


_OWN: Final[Labels] = {labels.SOURCE_CLUSTER: "dfw-1"}
_OTHER: Final[Labels] = {labels.SOURCE_CLUSTER: "ord-1"}
_CHANGES: Final[tuple[Verb, ...]] = ("apply", "replace", "patch")
_REMOVALS: Final[tuple[Verb, ...]] = ("delete", "delete_all")
# Names that are not `instance-<deployment>-<ordinal>`.
_OTHER_NAMES: Final = ("bucket-logs", "instance-0", "instance-web", "instance-web-01", "web-0")


def _claim_rows() -> tuple[Row, ...]:
    """Each verb on own claims, another cell's, another service's and unlabelled ones (AT-05)."""
    return (
        *(_claim_row("create", None, name, refused=NAME_FORM) for name in _OTHER_NAMES),
        *(
            _claim_row("create", None, desired_requests=asks, refused=NOT_OURS)
            for asks in ((THEIRS,), (OURS, THEIRS), ("compute.datumapis.community/vcpus",))
        ),
        _claim_row("create", None, "instance-a.b-c-10"),
        *(row for verb in _CHANGES for row in _change_rows(verb)),
        *(row for verb in _REMOVALS for row in _removal_rows(verb)),
    )


def _change_rows(verb: Verb) -> tuple[Row, ...]:
    foreign = (THEIRS,)
    return (
        _claim_row(verb, _OWN),
        _claim_row(verb, _OWN, "bucket-logs"),
        _claim_row(
            verb, _OWN, existing_requests=foreign, desired_requests=foreign, refused=NOT_OURS
        ),
        _claim_row(verb, _OTHER, refused=CLAIMS.not_yours),
        _claim_row(verb, {}),
        _claim_row(verb, {}, existing_requests=foreign, desired_requests=foreign, refused=NOT_OURS),
        _claim_row(
            verb,
            {},
            "bucket-logs",
            existing_requests=foreign,
            desired_requests=foreign,
            refused=NAME_FORM,
        ),
        _claim_row(verb, {}, "bucket-logs", refused=NAME_FORM),
    )


def _removal_rows(verb: Verb) -> tuple[Row, ...]:
    return (
        _claim_row(verb, _OWN),
        _claim_row(verb, _OWN, "bucket-logs"),
        _claim_row(verb, _OWN, existing_requests=(THEIRS,)),
        _claim_row(verb, _OTHER, refused=CLAIMS.not_yours),
        _claim_row(verb, {}),
        _claim_row(verb, {}, existing_requests=(OURS, THEIRS), refused=OTHER_SERVICE),
        _claim_row(verb, {}, "bucket-logs", existing_requests=(THEIRS,), refused=NAME_FORM),
        _claim_row(verb, {}, "bucket-logs", refused=NAME_FORM),
    )


def _claim_row(
    verb: Verb,
    existing: Labels | None,
    name: str = SLOT,
    *,
    refused: str = "",
    existing_requests: tuple[str, ...] = (OURS,),
    desired_requests: tuple[str, ...] = (OURS,),
) -> Row:
    is_removal = verb in _REMOVALS
    owner = "nothing" if existing is None else existing.get(labels.SOURCE_CLUSTER, "unlabelled")
    asked = "+".join(desired_requests if existing is None else existing_requests)
    return Row(
        f"{verb} {name}, {owner}, {asked}",
        CLAIMS,
        DFW,
        verb,
        existing,
        None if is_removal else _OWN,
        refused=refused,
        name=name,
        existing_requests=existing_requests,
        desired_requests=desired_requests,
    )


def _management_rows() -> tuple[Row, ...]:
    """The management operator may only delete claims of slots that name a cell (AT-04)."""
    only = "the management operator only removes ResourceClaims"
    no_cell = "the ResourceClaim names no cell"
    form = "the name of the ResourceClaim is not instance-<Instance name>"
    rows = (
        _claim_row("create", None, refused=only),
        _claim_row("patch", _OWN, refused=only),
        _claim_row("replace", _OWN, refused=only),
        _claim_row("status", _OWN, refused=only),
        *(
            row
            for verb in _REMOVALS
            for row in (
                _claim_row(verb, _OWN),
                _claim_row(verb, {}, refused=no_cell),
                _claim_row(verb, _OTHER, "bucket-logs", refused=form),
                _claim_row(verb, _OTHER, existing_requests=(OURS, THEIRS), refused=OTHER_SERVICE),
            )
        ),
    )
    return tuple(replace(row, title=f"management: {row.title}", user=MANAGEMENT) for row in rows)


def _city_rows() -> tuple[Row, ...]:
    """Slots with the name of a city are reserved to the cell of that city (AT-04)."""
    taken = "the name of the ResourceClaim is that of a slot in city zrh, which cell zrh-1 serves"
    slot = "instance-web-zrh-0"
    theirs = {labels.SOURCE_CLUSTER: "zrh-1"}
    by_owner = (
        Row("its own cell, create", CLAIMS, ZRH, "create", None, theirs, name=slot),
        Row("its own cell, free a slot", CLAIMS, ZRH, "delete", {}, name=slot),
        Row("its own cell, release", CLAIMS, ZRH, "delete", theirs, name=slot),
    )
    others = (
        _claim_row("create", None, slot, refused=taken),
        _claim_row("apply", None, slot, refused=taken),
        _claim_row("patch", {}, slot, refused=taken),
        _claim_row("delete", {}, slot, refused=taken),
        _claim_row("patch", _OWN, slot),
        _claim_row("delete", _OWN, slot),
        _claim_row("create", None, "instance-zrh-0"),
        _claim_row("create", None, "instance-web-zrh-dfw-0"),
        _claim_row("create", None, "instance-web-szrh-0"),
        _claim_row("create", None, "instance-web-zrh-1-0"),
    )
    return (*by_owner, *others)


TABLE: Final = (
    *_rows(INSTANCES),
    *_slots(),
    *_rows(CLAIMS),
    *_claim_rows(),
    *_management_rows(),
    *_city_rows(),
    # Instance copies are in hub namespaces; claims in any namespace of a project.
    Row(
        "create elsewhere",
        INSTANCES,
        DFW,
        "create",
        None,
        {labels.CELL: "dfw-1"},
        in_project=False,
        refused=ELSEWHERE,
    ),
    Row(
        "delete elsewhere",
        INSTANCES,
        DFW,
        "delete",
        {labels.CELL: "dfw-1"},
        in_project=False,
        refused=ELSEWHERE,
    ),
    Row(
        "create elsewhere",
        CLAIMS,
        DFW,
        "create",
        None,
        {labels.SOURCE_CLUSTER: "dfw-1"},
        in_project=False,
    ),
)
