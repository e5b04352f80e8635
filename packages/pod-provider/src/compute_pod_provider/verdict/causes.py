"""Causes in messages of kubelet and registries, as short sentences of our own. Pure.

Kubelet alternates between several wordings of one trouble, with ids and times inside. Derived by
class, a condition keeps its bytes while the trouble stays, and nothing is written.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST_LINE: Final = 200

_NOT_FOUND: Final = re.compile(r"not found|manifest unknown|does not exist", re.IGNORECASE)
_DENIED: Final = re.compile(
    r"denied|unauthorized|forbidden|authorization failed|\b40[13]\b", re.IGNORECASE
)
_MISSING_KEY: Final = re.compile(
    r"couldn't find key (?P<key>\S+) in (?P<kind>ConfigMap|Secret) (?:\S+/)?(?P<name>[^\s/]+)"
)
_MISSING: Final = re.compile(
    r'(?P<kind>secret|configmap)s? "(?P<name>[^"]+)" not found', re.IGNORECASE
)
_MISSING_FILE_KEY: Final = re.compile(
    r"references non-existent (?P<kind>secret|config) key: (?P<key>\S+)"
)
_AS_ROOT: Final = re.compile(r"runAsNonRoot|non-root", re.IGNORECASE)
_NO_COMMAND: Final = re.compile(r"executable file not found|no such file or directory|stat /")
_MOUNT: Final = re.compile(r'for volume "(?P<volume>[^"]+)"\s*:\s*(?P<cause>.*)', re.DOTALL)
# UUIDs and container ids, which differ in every attempt.
_IDS: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{12,}\b")
_KINDS: Final = {"secret": "Secret", "configmap": "ConfigMap", "config": "ConfigMap"}


def derive_pull_cause(reason: str, message: str) -> str:
    """Why an image could not be pulled; "" where it is not known."""
    if reason == "InvalidImageName":
        return "the name is invalid"
    if _DENIED.search(message):
        return "access denied"
    return "not found" if _NOT_FOUND.search(message) else ""


def derive_start_cause(message: str) -> str:
    """Why a container could not be started."""
    named = _named_object(message)
    if named:
        return named
    if _AS_ROOT.search(message):
        return "the image runs as root, which this cell does not allow"
    if _NO_COMMAND.search(message):
        return "the command was not found"
    return first_line(message) or "no cause was reported"


def derive_mount_cause(message: str) -> tuple[str, str] | None:
    """The volume that could not be mounted and why; None where no volume is named."""
    mounted = _MOUNT.search(message)
    if mounted is None:
        return None
    missing = _MISSING_FILE_KEY.search(mounted["cause"])
    if missing:
        cause = f'key "{missing["key"]}" not found in {_KINDS[missing["kind"]]}'
        return mounted["volume"], cause
    return mounted["volume"], _named_object(mounted["cause"]) or first_line(mounted["cause"])


def _named_object(message: str) -> str:
    key = _MISSING_KEY.search(message)
    if key:
        return f'key "{key["key"]}" not found in {key["kind"]} "{key["name"]}"'
    missing = _MISSING.search(message)
    return f'{_KINDS[missing["kind"].lower()]} "{missing["name"]}" not found' if missing else ""


def first_line(message: str) -> str:
    """The first line without ids, cut."""
    line = message.strip().partition("\n")[0]
    cut = _IDS.sub("…", line)[:LONGEST_LINE]
    return cut.strip(" :\"'")
