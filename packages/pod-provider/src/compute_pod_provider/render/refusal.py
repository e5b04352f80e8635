"""Refusal: an Instance that this cell cannot run, with the sentence for its user. Pure.

A refused Instance gets neither Pod nor finalizer; its conditions name the part of the template that
must change. Without it a virtual machine would wait for ever as if it were starting.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RefusalKind(StrEnum):
    """The cause in one word, for metrics."""

    UNREADABLE = "unreadable"
    VIRTUAL_MACHINE = "virtual_machine"
    DISK = "disk"
    INSTANCE_TYPE = "instance_type"
    SIZE = "size"
    FIELD_REFERENCE = "field_reference"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no Pod is made of an Instance."""

    kind: RefusalKind
    message: str


VIRTUAL_MACHINE = Refusal(
    RefusalKind.VIRTUAL_MACHINE, "This cell runs containers only; a virtual machine cannot run here"
)


def refuse_unreadable(path: str) -> Refusal:
    return Refusal(RefusalKind.UNREADABLE, f'The field "{path}" is missing or cannot be read')


def refuse_disk(volume: str) -> Refusal:
    return Refusal(RefusalKind.DISK, f'Volume "{volume}" is a disk; this cell has no disks')


def refuse_type(instance_type: str) -> Refusal:
    return Refusal(RefusalKind.INSTANCE_TYPE, f'Instance type "{instance_type}" is unknown here')


def refuse_size(instance_type: str) -> Refusal:
    return Refusal(
        RefusalKind.SIZE, f'Containers ask for more than instance type "{instance_type}" has'
    )


def refuse_field(variable: str, container: str, path: str) -> Refusal:
    return Refusal(
        RefusalKind.FIELD_REFERENCE,
        f'Variable "{variable}" of container "{container}" refers to "{path}",'
        " which instances may not read",
    )
