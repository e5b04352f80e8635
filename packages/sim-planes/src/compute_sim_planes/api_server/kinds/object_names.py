"""Validation of names, label keys and label values, with the messages of a real API server.

Each function returns a list of problems, empty for a valid text. `object_meta` selects the function
for each kind.
"""

from __future__ import annotations

import re
from typing import Final

_DNS_LABEL_TEXT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN_TEXT: Final = rf"{_DNS_LABEL_TEXT}(\.{_DNS_LABEL_TEXT})*"
_DNS_1035_TEXT: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_TEXT: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_DNS_LABEL: Final = re.compile(_DNS_LABEL_TEXT)
_DNS_SUBDOMAIN: Final = re.compile(_DNS_SUBDOMAIN_TEXT)
_DNS_1035: Final = re.compile(_DNS_1035_TEXT)
_QUALIFIED: Final = re.compile(_QUALIFIED_TEXT)

LABEL_LIMIT: Final = 63
SUBDOMAIN_LIMIT: Final = 253

_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_DNS_LABEL_TEXT}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_DNS_1035_TEXT}')"
)
_QUALIFIED_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_QUALIFIED_TEXT}')"
)
_LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def dns_label_problems(text: str) -> list[str]:
    return _problems(text, _DNS_LABEL, LABEL_LIMIT, _LABEL_RULE)


def dns_1035_label_problems(text: str) -> list[str]:
    return _problems(text, _DNS_1035, LABEL_LIMIT, _DNS_1035_RULE)


def dns_subdomain_problems(text: str) -> list[str]:
    return _problems(text, _DNS_SUBDOMAIN, SUBDOMAIN_LIMIT, _SUBDOMAIN_RULE)


def path_segment_problems(text: str) -> list[str]:
    """The rule for RBAC objects: any single segment of a URL path."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{sign}'" for sign in ("/", "%") if sign in text]


def label_value_problems(text: str) -> list[str]:
    problems = [f"must be no more than {LABEL_LIMIT} characters"] if len(text) > LABEL_LIMIT else []
    if text and _QUALIFIED.fullmatch(text) is None:
        problems.append(_LABEL_VALUE_RULE)
    return problems


def qualified_name_problems(text: str) -> list[str]:
    """`name` or `prefix/name`: label keys, annotation keys, finalizers, condition types."""
    prefix, slash, name = text.rpartition("/")
    if text.count("/") > 1:
        prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_QUALIFIED_RULE} {prefixed}"]
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems.extend(f"prefix part {detail}" for detail in dns_subdomain_problems(prefix))
    if not name:
        return [*problems, "name part must be non-empty", f"name part {_QUALIFIED_RULE}"]
    if len(name) > LABEL_LIMIT:
        problems.append(f"name part must be no more than {LABEL_LIMIT} characters")
    if _QUALIFIED.fullmatch(name) is None:
        problems.append(f"name part {_QUALIFIED_RULE}")
    return problems


def _problems(text: str, pattern: re.Pattern[str], limit: int, rule: str) -> list[str]:
    problems = [f"must be no more than {limit} characters"] if len(text) > limit else []
    if pattern.fullmatch(text) is None:
        problems.append(rule)
    return problems
