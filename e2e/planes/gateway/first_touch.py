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
    """What was touched since the gateway started."""

    def __init__(self) -> None:
        self._touched: set[tuple[str, str, str]] = set()

    def refuse(self, project: str, asked: ResourcePath | None) -> ApiError | None:
        """The refusal of a first touch; None from the second on."""
        if asked is None or asked.group in _QUESTIONS:
            return None
        key = (project, asked.group, asked.resource)
        if key in self._touched:
            return None
        self._touched.add(key)
        return api_errors.too_many_requests(MESSAGE, RETRY_AFTER_SECONDS)

    def forget(self, project: str) -> None:
        """A project that is made again under the same name starts anew."""
        self._touched = {key for key in self._touched if key[0] != project}
