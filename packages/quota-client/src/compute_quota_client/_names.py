"""Kubernetes' rules for names, keys and label values, checked before a URL or a claim is built.

Pure. The server checks them too, but a name becomes part of a path: one with a slash or a dot
segment would address another object (docs/spec/quota.md A4).
"""

from __future__ import annotations

import re
from typing import Final

from compute_quota_client._exceptions import QuotaUsageError

# `fullmatch` throughout: `$` also matches before a trailing newline.
LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
QUALIFIED: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
MAX_SUBDOMAIN: Final = 253


def shown(text: object) -> str:
    """A bad value as an error may show it: quoted, and short."""
    quoted = repr(text)
    return quoted if len(quoted) <= 80 else quoted[:79] + "…"


def check_label(argument: str, value: str) -> str:
    """`value` if it is a DNS label, as projects and namespaces are."""
    if not LABEL.fullmatch(value):
        raise QuotaUsageError(f"{shown(value)} is not a DNS label", argument=argument)
    return value


def check_subdomain(argument: str, value: str) -> str:
    """`value` if it is a DNS subdomain, as claims' names are."""
    if len(value) > MAX_SUBDOMAIN or not SUBDOMAIN.fullmatch(value):
        raise QuotaUsageError(f"{shown(value)} is not a DNS subdomain", argument=argument)
    return value


def check_key(argument: str, key: str) -> str:
    """`key` if it is valid for labels and annotations: a name, with a DNS prefix or without."""
    prefix, slash, name = key.rpartition("/")
    prefixed = len(prefix) <= MAX_SUBDOMAIN and SUBDOMAIN.fullmatch(prefix)
    if not QUALIFIED.fullmatch(name) or (slash and not prefixed):
        raise QuotaUsageError(f"{shown(key)} is not a label or annotation key", argument=argument)
    return key


def check_label_value(argument: str, key: str, value: str) -> str:
    """`value` if it is a valid label value."""
    if not LABEL_VALUE.fullmatch(value):
        raise QuotaUsageError(
            f"{shown(value)} of {shown(key)} is not a label value", argument=argument
        )
    return value
