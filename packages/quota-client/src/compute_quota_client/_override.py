"""`typing.override`, which Python 3.11 does not have; type checkers take it from typing-extensions.

A replacement at run time instead of a dependency: the library needs httpx and pydantic only.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if sys.version_info >= (3, 12):
    from typing import override
elif TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method):  # noqa: ANN001, ANN202 - never seen by a type checker
        return method


__all__ = ["override"]
