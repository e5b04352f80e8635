"""The first touch of a kind in a project: Milo opens its storage and asks to come back (2.1).

Kept per project and kind, and only for what is stored: questions such as access reviews are not.
"""

from __future__ import annotations

from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.request_info import ResourcePath

MESSAGE: Final = "storage is (re)initializing"
RETRY_AFTER_SECONDS: Final = 1
_QUESTIONS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


class FirstTouches:
    """What was touched since the gateway started.

    A plane is known by the address of its server: a project that is made again has another.
    """

    def __init__(self) -> None:
        self._touched: set[tuple[str, str, str]] = set()

    def is_first(self, plane: str, asked: ResourcePath) -> bool:
        """Whether nobody has touched this kind there; what is not stored is never touched."""
        key = (plane, asked.group, asked.resource)
        return asked.group not in _QUESTIONS and key not in self._touched

    def note(self, plane: str, asked: ResourcePath) -> ApiError:
        """The refusal of a first touch; the next is none any more."""
        self._touched.add((plane, asked.group, asked.resource))
        return api_errors.too_many_requests(MESSAGE, RETRY_AFTER_SECONDS)
