"""Rules 36–40: virtual machines, which boot from their first volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute_api_types.validation.attachments import review_attachments
from compute_api_types.validation.disks import has_image
from compute_api_types.validation.document import as_list
from compute_api_types.validation.errors import forbidden, required
from compute_api_types.validation.ports import review_ports

if TYPE_CHECKING:
    from compute_api_types.validation.attachments import Volumes
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors


def review_virtual_machine(runtime: Node, machine: Node, volumes: Volumes) -> Errors:
    if runtime.has("sandbox"):  # 36
        yield forbidden(machine.path, "an instance has either a sandbox or a virtual machine")
        return
    if not as_list(machine.content.get("volumeAttachments")):  # 37
        yield required(machine.path.field("volumeAttachments"), "the first one is the boot volume")
    yield from review_attachments(machine, volumes)  # 38
    yield from _review_boot_volume(machine, volumes)
    yield from review_ports(machine)  # 40


def _review_boot_volume(machine: Node, volumes: Volumes) -> Errors:
    for attachment in machine.elements("volumeAttachments"):
        # By index, not by what comes first: a stored object may be read in the order of the wanted
        # one.
        if attachment.index == 0:
            volume = volumes.get(attachment.text("name"))
            if volume is not None and not has_image(volume.section("disk")):  # 39
                detail = "the first volume is booted and must be a disk made from an image"
                yield required(attachment.path.field("name"), detail)
