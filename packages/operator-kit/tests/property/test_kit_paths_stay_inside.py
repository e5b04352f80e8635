from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.client.urls import encode_segment, object_path
from compute_operator_kit.core.errors import InvalidSpecError
from compute_operator_kit.testing.fakes import a_key

NASTY = st.one_of(
    st.text(min_size=1, max_size=40),
    st.text(alphabet="./%?#\\ 2eEfF\n\t;:@&=+$,", min_size=1, max_size=12),
)


@pytest.mark.fault("G6")
@given(namespace=NASTY, name=NASTY)
def test_whatever_names_hold_a_path_stays_under_its_prefix(namespace: str, name: str) -> None:
    try:
        path = object_path(a_key(name, namespace=namespace))
    except InvalidSpecError:
        return
    parts = urlsplit(path)
    assert (parts.query, parts.fragment) == ("", "")
    segments = parts.path.split("/")
    assert segments[:5] == ["", "apis", "example.datumapis.com", "v1", "namespaces"]
    assert (unquote(segments[5]), segments[6], unquote(segments[7])) == (namespace, "notes", name)
    assert len(segments) == 8
    assert not {".", ".."} & set(map(unquote, segments))


@given(NASTY)
def test_a_segment_decodes_to_what_it_was(text: str) -> None:
    try:
        encoded = encode_segment(text)
    except InvalidSpecError:
        return
    assert encoded.isascii()
    assert unquote(encoded) == text
