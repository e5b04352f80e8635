"""Rules 6–14: what a disk is made from and how large it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compute_api_types.quantity import GIBI, round_up
from compute_api_types.validation.errors import invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compute_api_types.validation.document import Amount, Node, Path
    from compute_api_types.validation.errors import Errors

DISK_TYPE: Final = "pd-standard"
IMAGE: Final = "datumcloud/ubuntu-2204-lts"
FILESYSTEM: Final = "ext4"

_BYTE: Final = GIBI / GIBI
_GIB: Final = int(GIBI)
_SMALLEST_GIB: Final = 10
_LARGEST_GIB: Final = 100
# What the image unpacks to; a disk that names no size gets this one.
_IMAGE_GIB: Final = 25


def review_disk(disk: Node) -> Errors:
    template = disk.object("template")
    if template is None:
        yield required(disk.path.field("template"), "a disk is made from a template")  # 6
        return
    spec = template.section("spec")
    # 7: an absent type is the schema's default, which is the one that is supported.
    if spec.has("type") and spec.text("type") != DISK_TYPE:
        yield not_supported(spec.path.field("type"), spec.text("type"), [DISK_TYPE])
    # Wire oddity of 8 and 9: their paths leave out `spec`.
    yield from _review_populator(spec.section("populator"), template.path.field("populator"))
    yield from _review_size(spec)


def has_image(disk: Node) -> bool:
    """Whether the disk is filled from an image, so that it can be booted."""
    return disk.section("template").section("spec").section("populator").has("image")


def _review_populator(populator: Node, shown: Path) -> Errors:
    image = populator.object("image")
    if image is not None and image.text("name") != IMAGE:  # 8
        yield not_supported(shown.field("image").field("name"), image.text("name"), [IMAGE])
    filesystem = populator.object("filesystem")
    if filesystem is not None and filesystem.text("type") != FILESYSTEM:  # 9
        path = shown.field("filesystem").field("type")
        yield not_supported(path, filesystem.text("type"), [FILESYSTEM])


def _review_size(spec: Node) -> Errors:
    from_image = spec.section("populator").has("image")
    resources = spec.object("resources")
    if resources is None:
        if not from_image:  # 10
            detail = f"a disk that is not made from {IMAGE} needs requests.storage"
            yield required(spec.path.field("resources"), detail)
        return
    requests = resources.object("requests")
    if requests is None:  # 11
        yield required(resources.path.field("requests"), "must contain storage")
        return
    path = requests.path.key("storage")
    if not requests.has("storage"):  # 12
        yield required(path, "the size of the disk, such as 20Gi")
        return
    storage = requests.amount("storage")
    # Text that is no quantity has been reported with the types.
    if storage is not None:
        for problem in _size_problems(storage, from_image=from_image):
            yield invalid(path, storage, problem)


def _size_problems(storage: Amount, *, from_image: bool) -> Iterator[str]:
    size = round_up(storage.exact, _BYTE)
    if size <= 0:
        yield "must be greater than 0"  # 13, and then stop
        return
    problems = {  # 13, each on its own: 10.5Gi breaks the third only, 1.5Gi the first and the third
        f"must be at least {_SMALLEST_GIB}Gi": size < _SMALLEST_GIB * _GIB,
        f"must be at most {_LARGEST_GIB}Gi": size > _LARGEST_GIB * _GIB,
        "must be a multiple of 1Gi": size % _GIB != 0,
    }
    yield from (problem for problem, applies in problems.items() if applies)
    if not any(problems.values()) and from_image and size < _IMAGE_GIB * _GIB:  # 14
        yield f"must be at least {_IMAGE_GIB}Gi for {IMAGE}"
