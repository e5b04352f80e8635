"""Makes text of others safe to print: what a tenant or a server wrote must not steer a terminal or
forge a log line.

Everything that leaves the process as text for people (log lines, events, error lines) passes
through here. Only escapes and cuts; it never decides what a text means.
"""

from __future__ import annotations


def escape_unprintable(text: str) -> str:
    """The text with every control, format, bidi, separator and lone surrogate character spelled
    out.

    `str.isprintable` is exactly the complement of those Unicode categories, the plain space
    excepted: "a\\nb" becomes "a\\\\nb", a right-to-left override becomes "\\\\u202e".
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escape_character(char) for char in text)


def escape_character(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def cut_to_bytes(text: str, limit: int) -> str:
    """The longest beginning of the text that fits in `limit` bytes of UTF-8, never half a
    character.
    """
    if len(text) <= limit and text.isascii():
        return text  # nearly always, and a line has a dozen values
    raw = text.encode("utf-8", errors="backslashreplace")
    if len(raw) <= limit:
        return raw.decode("utf-8")
    # Ignoring errors drops only the torn character at the end: everything before it was encoded by
    # us.
    return raw[:limit].decode("utf-8", errors="ignore")
