from __future__ import annotations

import hashlib

from compute_operator_kit.core.compression import is_packed, pack
from compute_operator_kit.core.decode_cache import LARGEST_SHARED, MOST_SHARED, DecodeCache
from compute_operator_kit.core.keys import Uid

VERSION = (Uid("u1"), "7")


def test_what_was_made_of_a_version_is_found_again() -> None:
    recent: DecodeCache[list[str]] = DecodeCache()
    made = recent.put(VERSION, b"bytes", ["made"])
    assert recent.find(VERSION, b"bytes") is made
    assert recent.find((Uid("u1"), "8"), b"bytes") is None


def test_a_version_that_came_with_other_bytes_is_another() -> None:
    # A plane that was restored from a backup counts some versions again.
    recent: DecodeCache[str] = DecodeCache()
    recent.put(VERSION, b"before", "before")
    assert recent.find(VERSION, b"after") is None
    recent.put(VERSION, b"after", "after")
    assert recent.find(VERSION, b"after") == "after"
    assert recent.find(VERSION, b"before") is None


def test_only_so_many_are_kept_and_the_oldest_goes() -> None:
    recent: DecodeCache[int] = DecodeCache()
    for number in range(MOST_SHARED + 1):
        recent.put((Uid("u1"), str(number)), b"{}", number)
    assert recent.find((Uid("u1"), "0"), b"{}") is None
    kept = [recent.find((Uid("u1"), str(number)), b"{}") for number in range(1, MOST_SHARED + 1)]
    assert kept == list(range(1, MOST_SHARED + 1))


def test_the_same_version_once_more_drives_no_other_out() -> None:
    recent: DecodeCache[int] = DecodeCache()
    for number in range(MOST_SHARED):
        recent.put((Uid("u1"), str(number)), b"{}", number)
    recent.put((Uid("u1"), "5"), b"other", 5)
    assert recent.find((Uid("u1"), "0"), b"{}") == 0


def test_what_is_large_is_not_kept() -> None:
    recent: DecodeCache[str] = DecodeCache()
    large = b"x" * (LARGEST_SHARED + 1)
    assert recent.put(VERSION, large, "made") == "made"
    assert recent.find(VERSION, large) is None


def test_what_is_packed_counts_as_several_times_as_large() -> None:
    recent: DecodeCache[str] = DecodeCache()
    packed = pack("".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(99)).encode())
    assert is_packed(packed)
    assert LARGEST_SHARED // 8 < len(packed) < LARGEST_SHARED
    recent.put(VERSION, packed, "made")
    assert recent.find(VERSION, packed) is None
