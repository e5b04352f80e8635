"""Decides whether a project's plane is served, and where it is. Pure (management.md 9).

```
             Ready, name fits                       Project gone, or another UID under its name
 unknown ───────────────────────► engaged ───────────────────────────────────────► unknown
                                    │ ▲
                                    └─┘ Ready turns False, deletion begins: finalizers need us
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from compute_api_types import names
from compute_management_operator.discovery.observe import Seen
from compute_operator_kit.objects import Absent

CONTROL_PLANE: Final = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/{}/control-plane"


@dataclass(frozen=True, slots=True)
class Engage:
    """Begin to serve the plane of this Project."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Disengage:
    """End serving the plane: its Project is gone."""

    name: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing to do."""


Decision: TypeAlias = Engage | Disengage | Leave


def plan(seen: Seen) -> Decision:
    if isinstance(seen.project, Absent):
        return Leave() if seen.engaged_uid is None else Disengage(seen.name)
    if seen.engaged_uid is not None:
        # Back under its name with another UID it is another project: nothing that we hold is true
        # of it. The same one stays, whatever its conditions say now.
        return Leave() if seen.engaged_uid == seen.project.uid else Disengage(seen.name)
    if not names.is_dns_label(seen.name):
        # Its name would become part of a URL and of a label value.
        return Leave()
    return Engage(seen.name, seen.project.uid) if seen.project.is_ready else Leave()


def derive_project_url(base: str, project: str) -> str:
    """The control plane of a project behind the same server as `base`, whose own path is replaced.

    Raises:
        NamingError: when the name is no DNS label; a request must never be built from it.
    """
    if not names.is_dns_label(project):
        raise names.NamingError(f"addressing project {project!r}: it must be a DNS label")
    found = urlsplit(base)
    return urlunsplit((found.scheme, found.netloc, CONTROL_PLANE.format(project), "", ""))
