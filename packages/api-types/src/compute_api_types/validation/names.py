"""What names may look like: DNS labels and port names.

Every function lists the parts of the rule that a name breaks, one sentence each, because each part
is an error of its own on the wire (`docs/spec/api.md` 12.3). All checks are linear in the length of
the name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from compute_api_types.names import LONGEST_LABEL
from compute_api_types.validation.errors import invalid, required

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors

_LONGEST_PORT_NAME: Final = 15
_DNS_LABEL_DETAIL: Final = (
    "must consist of lower case letters, digits and '-', and start and end with a letter or digit"
)
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NOT_OF_A_PORT_NAME: Final = re.compile(r"[^-a-z0-9]")
_LETTER: Final = re.compile(r"[a-z]")


def dns_label_problems(name: str) -> tuple[str, ...]:
    problems = {
        f"must have at most {LONGEST_LABEL} characters": len(name) > LONGEST_LABEL,
        _DNS_LABEL_DETAIL: _DNS_LABEL.fullmatch(name) is None,
    }
    return tuple(problem for problem, applies in problems.items() if applies)


def port_name_problems(name: str) -> tuple[str, ...]:
    problems = {
        f"must have at most {_LONGEST_PORT_NAME} characters": len(name) > _LONGEST_PORT_NAME,
        "must consist of lower case letters, digits and '-'": (
            _NOT_OF_A_PORT_NAME.search(name) is not None
        ),
        "must contain a letter from a to z": _LETTER.search(name) is None,
        "must not contain '--'": "--" in name,
        "must not start or end with '-'": name.startswith("-") or name.endswith("-"),
    }
    return tuple(problem for problem, applies in problems.items() if applies)


def review_name(named: Node, detail: str) -> Errors:
    """The form of rules 20, 26 and 46: Required when empty, else one Invalid per broken part."""
    name = named.text("name")
    path = named.path.field("name")
    if not name:
        yield required(path, detail)
        return
    for problem in dns_label_problems(name):
        yield invalid(path, name, problem)
