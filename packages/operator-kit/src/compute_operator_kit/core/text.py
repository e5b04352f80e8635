"""Escaping and cutting of foreign text for logs, events and error messages.

Text of a tenant or a server must not control a terminal or forge a log line.
"""

from __future__ import annotations


def escape_unprintable(text: str) -> str:
    """The text with all control, format, bidi, separator and lone surrogate characters escaped.

    These are the characters for which `str.isprintable` is false: "a\\nb" becomes "a\\\\nb", a
    right-to-left override becomes "\\\\u202e".
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escape_character(char) for char in text)


def escape_character(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def cut_to_bytes(text: str, limit: int) -> str:
    """The longest prefix of whole characters that fits in `limit` bytes of UTF-8."""
    if len(text) <= limit and text.isascii():
        return text  # nearly always, and a log line has a dozen values
    raw = text.encode("utf-8", errors="backslashreplace")
    if len(raw) <= limit:
        return raw.decode("utf-8")
    # Ignoring errors drops only a cut character at the end.
    return raw[:limit].decode("utf-8", errors="ignore")
