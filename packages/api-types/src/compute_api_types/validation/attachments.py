"""Rules 29–31, and 38 for virtual machines: which volume is attached, and where it is mounted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from compute_api_types.validation.errors import duplicate, internal_error, not_found

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors

    Volumes: TypeAlias = Mapping[str, Node]


def volumes_by_name(template_spec: Node) -> Volumes:
    """The volumes of a template; of several with one name the first."""
    volumes: dict[str, Node] = {}
    for volume in template_spec.elements("volumes"):
        volumes.setdefault(volume.text("name"), volume)
    return volumes


def attached_volume_names(template_spec: Node) -> frozenset[str]:
    return frozenset(
        attachment.text("name")
        for user in _users_of_volumes(template_spec.section("runtime"))
        for attachment in user.elements("volumeAttachments")
    )


def _users_of_volumes(runtime: Node) -> Iterator[Node]:
    yield from runtime.section("sandbox").elements("containers")
    yield runtime.section("virtualMachine")


def review_attachments(user: Node, volumes: Volumes) -> Errors:
    """The attachments of one container or of the virtual machine."""
    mount_paths: set[str] = set()
    for attachment in user.elements("volumeAttachments"):
        name = attachment.text("name")
        volume = volumes.get(name)
        if volume is None:
            yield not_found(attachment.path.field("name"), name)  # 29
        # Without a mount path the volume is handed over as a raw device, whatever is on it.
        if attachment.has("mountPath"):
            if volume is not None:
                yield from _review_filesystem(attachment, volume)
            yield from _review_repeated_mount_path(attachment, mount_paths)


def _review_filesystem(attachment: Node, volume: Node) -> Errors:
    disk = volume.object("disk")
    if disk is None:
        return
    path = attachment.path.field("mountPath")
    template = disk.object("template")
    if template is None:
        yield internal_error(path, "the disk has no template")  # 30
    elif not template.section("spec").has("populator"):
        yield not_found(path, attachment.text("mountPath"))  # 30: nothing puts a filesystem there


def _review_repeated_mount_path(attachment: Node, seen: set[str]) -> Errors:
    mount_path = attachment.text("mountPath")
    if mount_path in seen:
        yield duplicate(attachment.path.field("mountPath"), mount_path)  # 31
    seen.add(mount_path)
