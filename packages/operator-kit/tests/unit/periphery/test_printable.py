from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.core.text import cut_to_bytes, escape_unprintable

# Lone surrogates too: JSON can carry them, UTF-8 cannot.
ANY_TEXT = st.text(st.characters(codec=None, categories=None, exclude_categories=[]))


@given(ANY_TEXT)
def test_escaped_text_holds_nothing_that_steers_a_terminal_or_ends_a_line(text: str) -> None:
    escaped = escape_unprintable(text)

    assert escaped.isprintable()
    assert len(escaped.splitlines()) <= 1


@given(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)))
def test_plain_text_is_left_alone(text: str) -> None:
    assert escape_unprintable(text) == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a\nb", r"a\nb"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\u202eevil", r"\u202eevil"),
        ("line\u2028separator", r"line\u2028separator"),
        ("\ud800", r"\ud800"),
        ("naïve café", "naïve café"),
    ],
)
def test_characters_are_spelled_out(text: str, escaped: str) -> None:
    assert escape_unprintable(text) == escaped


@given(ANY_TEXT, st.integers(min_value=0, max_value=64))
def test_a_cut_text_is_a_whole_beginning_that_fits(text: str, limit: int) -> None:
    whole = text.encode("utf-8", errors="backslashreplace").decode("utf-8")

    cut = cut_to_bytes(text, limit)

    assert len(cut.encode("utf-8")) <= limit
    assert whole.startswith(cut)
    # The next character would not have fitted.
    if len(cut) < len(whole):
        assert len(whole[: len(cut) + 1].encode("utf-8")) > limit
