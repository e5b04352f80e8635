"""Certificates are read as by a cryptography library, and garbage is refused."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from compute_kubeconfig.certificate_dates import read_expiry, split_certificates

AUTHORITY = trustme.CA()
ROOT = AUTHORITY.cert_pem.bytes()
LEAF = AUTHORITY.issue_cert("localhost").cert_chain_pems[0].bytes()
# From 2050 on certificates spell the year with four digits.
MOMENTS = st.datetimes(datetime(1955, 1, 1), datetime(2900, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(MOMENTS)
def test_the_end_of_a_certificate_is_what_its_issuer_wrote(moment: datetime) -> None:
    until = moment.replace(microsecond=0)
    since = until - timedelta(days=1)
    issued = AUTHORITY.issue_cert("localhost", not_before=since, not_after=until)
    (der,) = split_certificates(issued.cert_chain_pems[0].bytes())

    assert read_expiry(der) == until
    assert read_expiry(der) == x509.load_der_x509_certificate(der).not_valid_after_utc


@given(st.lists(st.sampled_from([LEAF, ROOT]), min_size=1, max_size=4), st.text())
def test_every_certificate_of_a_bundle_is_found_whatever_stands_between(
    bundle: list[bytes], between: str
) -> None:
    separator = between.replace("-", "").encode("utf-8", "replace") + b"\r\n"

    split = split_certificates(separator.join(bundle))

    assert [x509.load_der_x509_certificate(der) for der in split] == [
        x509.load_pem_x509_certificate(pem) for pem in bundle
    ]


@given(st.integers(len("-----BEGIN CERTIFICATE-----\n"), len(LEAF) - 2))
def test_a_torn_bundle_is_refused(kept: int) -> None:
    with pytest.raises(ValueError, match="torn"):
        split_certificates(ROOT + LEAF[:kept].rstrip(b"-") + b"\n")


@given(st.binary())
def test_garbage_is_refused_and_never_more_than_that(garbage: bytes) -> None:
    (der,) = split_certificates(LEAF)
    for raw in (garbage, der[: len(garbage) % len(der)], der[:1] + garbage + der[1:]):
        with contextlib.suppress(ValueError):
            read_expiry(raw)
