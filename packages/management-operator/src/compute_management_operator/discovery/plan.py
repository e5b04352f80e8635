"""Whether the plane of a project is engaged, and its URL. Pure (management.md 9).

```
             Ready, name fits                       Project gone, or another UID under its name
 unknown ───────────────────────► engaged ───────────────────────────────────────► unknown
                                    │ ▲
                                    └─┘ Ready turns False, deletion begins
```

A project that is being deleted stays engaged: its finalizers are removed by this operator, and
without it the deletion would never end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from compute_api_types import names
from compute_management_operator.discovery.observe import ObservedProject
from compute_operator_kit.core.objects import Absent

CONTROL_PLANE: Final = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/{}/control-plane"


@dataclass(frozen=True, slots=True)
class Engage:
    """Engage the plane of this Project."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Disengage:
    """Disengage the plane: its Project does not exist any more."""

    name: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing to do."""


Decision: TypeAlias = Engage | Disengage | Leave


def plan(seen: ObservedProject) -> Decision:
    if isinstance(seen.project, Absent):
        return Leave() if seen.engaged_uid is None else Disengage(seen.name)
    if seen.engaged_uid is not None:
        # With another UID it is another project of the same name, and every cache is of the former
        # one. The same project stays engaged, whatever its conditions are now.
        return Leave() if seen.engaged_uid == seen.project.uid else Disengage(seen.name)
    if not names.is_dns_label(seen.name):
        # Its name would become part of a URL and of a label value.
        return Leave()
    return Engage(seen.name, seen.project.uid) if seen.project.is_ready else Leave()


def derive_project_url(base: str, project: str) -> str:
    """The URL of a project's control plane: that of `base` with another path.

    Raises:
        NamingError: when the name is no DNS label; a request must never be built from it.
    """
    if not names.is_dns_label(project):
        raise names.NamingError(f"addressing project {project!r}: it must be a DNS label")
    url = urlsplit(base)
    return urlunsplit((url.scheme, url.netloc, CONTROL_PLANE.format(project), "", ""))
