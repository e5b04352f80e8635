"""The string formats that a real API server checks, each as a predicate.

Formats that are not listed are not checked, as on a real server.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import Final
from urllib.parse import urlsplit

_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_UUID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
)
_HOSTNAME = re.compile(
    r"(?=.{1,255}\Z)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,62})(?:\.[a-zA-Z0-9-]{1,63})*\.?"
)
_MAC = re.compile(r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5,7}")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_DURATION = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h|d|w))+")


def is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2006-01-02")


def is_date_time(text: str) -> bool:
    """RFC 3339 as a real server parses it: no leap seconds, any offset."""
    day, separator, time_of_day = text.lower().partition("t")
    match = _TIME.fullmatch(time_of_day)
    if not separator or match is None or not is_date(day):
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_ip(version: int) -> Callable[[str], bool]:
    """A predicate for addresses of one IP version."""

    def answer(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version
        except ValueError:
            return False

    return answer


def is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def is_uri(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _whole(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


STRING_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": is_base64,
    "cidr": is_cidr,
    "date": is_date,
    "date-time": is_date_time,
    "datetime": is_date_time,
    "duration": _whole(_DURATION),
    "email": _whole(_EMAIL),
    "hostname": _whole(_HOSTNAME),
    "ipv4": is_ip(4),
    "ipv6": is_ip(6),
    "mac": _whole(_MAC),
    "uri": is_uri,
    "uuid": _whole(_UUID),
}
