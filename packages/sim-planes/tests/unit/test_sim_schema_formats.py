from __future__ import annotations

import pytest

from compute_sim_planes.api_server.schema.formats import STRING_FORMATS

GOOD = {
    "byte": ["", "aGVsbG8="],
    "cidr": ["10.0.0.0/8", "10.1.2.3/8", "fd00::/8"],
    "date": ["2026-06-20"],
    "date-time": ["2026-06-20T09:00:00Z", "2026-06-20t09:00:00.5z", "2026-06-20T09:00:00-07:00"],
    "datetime": ["2026-06-20T09:00:00Z"],
    "duration": ["1h30m", "5s", "1.5h", "10ms"],
    "email": ["a@example.com"],
    "hostname": ["example.com", "a", "a-b.c"],
    "ipv4": ["192.0.2.1"],
    "ipv6": ["2001:db8::1"],
    "mac": ["01:23:45:67:89:ab", "01-23-45-67-89-AB"],
    "uri": ["https://example.com/x", "urn:x:y"],
    "uuid": ["e21c7251-3b13-4e30-893c-8abc96281b60", "E21C72513B134E30893C8ABC96281B60"],
}
BAD = {
    "byte": ["a", "ä", "aGVsbG8"],
    "cidr": ["10.0.0.0", "10.0.0.0/64", "x/8"],
    "date": ["2026-02-30", "20260620", "yesterday"],
    "date-time": [
        "2026-06-20",
        "2026-06-20T25:00:00Z",
        "2026-06-20T09:60:00Z",
        "2026-06-20T09:00:60Z",
        "2026-02-30T09:00:00Z",
        "2026-06-20T09:00:00",
        "",
    ],
    "datetime": ["now"],
    "duration": ["soon", "1", ""],
    "email": ["example.com", "a @b"],
    "hostname": ["", "-a", "a b", "a" * 300],
    "ipv4": ["2001:db8::1", "192.0.2", "x"],
    "ipv6": ["192.0.2.1", "x"],
    "mac": ["01:23:45", "x"],
    "uri": ["example.com", "http://[x"],
    "uuid": ["e21c7251", "x"],
}


def test_every_format_has_good_and_bad_examples() -> None:
    assert set(GOOD) == set(BAD) == set(STRING_FORMATS)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in GOOD for text in GOOD[name]])
def test_a_text_of_its_format_is_taken(name: str, text: str) -> None:
    assert STRING_FORMATS[name](text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in BAD for text in BAD[name]])
def test_a_text_of_another_format_is_not(name: str, text: str) -> None:
    assert not STRING_FORMATS[name](text)
