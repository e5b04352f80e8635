"""Settings of a client; checked when built, an unknown field is refused.

Limits (tries, timeouts, connections) are not settings: they are constants beside the code that uses
them, since no caller has a reason to change them and a wrong value could stop a process.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict

DISTRIBUTION: Final = "datum-compute-quota-client"
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*")
_HEADER_TEXT: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
# Kubernetes refuses every write with a longer field manager.
_MAX_FIELD_MANAGER: Final = 128


def own_version() -> str:
    """The installed release."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


def _checked_base_path(value: str) -> str:
    for segment in value.strip("/").split("/") if value.strip("/") else ():
        if not _SEGMENT.fullmatch(segment):
            raise ValueError(f"{segment!r} is not a path segment")
    return value


def _checked_header_text(value: str) -> str:
    if not _HEADER_TEXT.fullmatch(value):
        raise ValueError("must be printable ASCII and not empty")
    return value


def _checked_field_manager(value: str) -> str:
    if len(value) > _MAX_FIELD_MANAGER:
        raise ValueError(f"must be at most {_MAX_FIELD_MANAGER} characters long")
    return _checked_header_text(value)


Http: TypeAlias = Literal["httpcore", "aiohttp"]


class QuotaSettings(BaseModel):
    """The identity of a client in its requests, and the address of project planes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    user_agent: Annotated[str, AfterValidator(_checked_header_text)] = (
        f"{DISTRIBUTION}/{own_version()}"
    )
    """The `User-Agent` of every request."""

    field_manager: Annotated[str, AfterValidator(_checked_field_manager)] = DISTRIBUTION
    """The field manager of a create or an adoption."""

    base_path: Annotated[str, AfterValidator(_checked_base_path)] = ""
    """Put in front of every path; the path of the kubeconfig's own server is dropped."""

    plane: Literal["project", "direct"] = "project"
    """`project`: each project has a plane under Milo's URL; `direct`: the server itself is the
    plane.
    """

    http: Literal["httpcore", "aiohttp"] = "httpcore"
    """The HTTP library: httpx's own, or aiohttp, which needs the extra of that name and a third of
    the CPU time.
    """

    allow_exec: bool = False
    """Whether a kubeconfig may name a program that prints the credential."""
