"""Rules 32 and 33, and 40 for virtual machines: names and numbers of ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compute_api_types.validation.errors import duplicate, invalid, required
from compute_api_types.validation.names import port_name_problems

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors

_LARGEST_PORT: Final = 65535


def review_ports(user: Node) -> Errors:
    """The ports of one container or of the virtual machine."""
    names: set[str] = set()
    for port in user.elements("ports"):
        yield from _review_name(port, names)
        # An absent number reads as 0, as in every client that knows no absent integers.
        number = port.integer("port") or 0
        if not 1 <= number <= _LARGEST_PORT:  # 33
            yield invalid(port.path.field("port"), number, f"must be between 1 and {_LARGEST_PORT}")


def _review_name(port: Node, seen: set[str]) -> Errors:
    name, path = port.text("name"), port.path.field("name")
    if not name:
        yield required(path, "a port has a name")  # 32
        return
    for problem in port_name_problems(name):  # 32, one Invalid for each
        yield invalid(path, name, problem)
    if name in seen:  # 32
        yield duplicate(path, name)
    seen.add(name)
