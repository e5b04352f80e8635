"""Rules 5 and 15–22: volumes, their source and their names. A disk's own rules are in `disks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compute_api_types.validation.attachments import attached_volume_names
from compute_api_types.validation.disks import review_disk
from compute_api_types.validation.document import as_list
from compute_api_types.validation.errors import duplicate, forbidden, invalid, required
from compute_api_types.validation.names import review_name

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors

_LARGEST_MODE: Final = 0o777
# The order decides which one is too many when several are set.
_SOURCES: Final = ("disk", "configMap", "secret")


def review_volumes(template_spec: Node, *, allows_items: bool = False) -> Errors:
    """`allows_items` lifts rule 18, where referenced data is delivered."""
    attached = attached_volume_names(template_spec)
    device_names: set[str] = set()
    names: set[str] = set()
    for volume in template_spec.elements("volumes"):
        yield from _review_device_name(volume, device_names)
        yield from _review_sources(volume, allows_items=allows_items)
        yield from review_name(volume, "a volume is attached by its name")  # 20
        yield from _review_use(volume, names, attached)


def _review_device_name(volume: Node, seen: set[str]) -> Errors:
    disk = volume.section("disk")
    # Every volume without a device name, whatever its source, takes the one of its place.
    device_name = disk.text("deviceName") or f"persistent-disk-{volume.index}"
    if device_name in seen:  # 5
        yield duplicate(disk.path.field("deviceName"), device_name)
    seen.add(device_name)


def _review_sources(volume: Node, *, allows_items: bool) -> Errors:
    present = [source for source in _SOURCES if volume.has(source)]
    if not present:  # 19
        yield required(volume.path, "must have one of disk, configMap or secret")
        return
    first, *others = (volume.section(source) for source in present)
    match present[0]:
        case "disk":
            yield from review_disk(first)
        case "configMap":
            yield from _review_config_map(first, allows_items=allows_items)
        case _:
            pass  # rules 70–73, where referenced data is delivered (12.4)
    for other in others:  # 15
        yield forbidden(other.path, "a volume has exactly one source")


def _review_config_map(source: Node, *, allows_items: bool) -> Errors:
    if not source.text("name"):  # 16
        yield required(source.path.field("name"), "the ConfigMap to read")
    mode = source.integer("defaultMode")
    if mode is not None and not 0 <= mode <= _LARGEST_MODE:  # 17
        detail = "must be between 0 and 511 (octal 0777)"
        yield invalid(source.path.field("defaultMode"), mode, detail)
    if as_list(source.content.get("items")) and not allows_items:  # 18
        yield forbidden(source.path.field("items"), "all keys of the ConfigMap are used")


def _review_use(volume: Node, seen: set[str], attached: frozenset[str]) -> Errors:
    name, path = volume.text("name"), volume.path.field("name")
    if name in seen:  # 21
        yield duplicate(path, name)
    elif name not in attached:  # 22
        yield required(path, "a volume must be attached by a container or the virtual machine")
    seen.add(name)
