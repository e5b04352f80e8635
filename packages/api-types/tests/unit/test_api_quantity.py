import re
from fractions import Fraction

import pytest

from compute_api_types.quantity import (
    GIBI,
    MEBI,
    MILLI,
    PATTERN,
    QuantityError,
    is_same_quantity,
    parse_quantity,
    round_up,
)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (0, Fraction(0)),
        (-5, Fraction(-5)),
        (2**80, Fraction(2**80)),
        ("0", Fraction(0)),
        ("+3", Fraction(3)),
        ("-3", Fraction(-3)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1n", Fraction(1, 10**9)),
        ("1u", Fraction(1, 10**6)),
        ("500m", Fraction(1, 2)),
        ("1k", Fraction(1000)),
        ("1M", Fraction(10**6)),
        ("1G", Fraction(10**9)),
        ("1T", Fraction(10**12)),
        ("1P", Fraction(10**15)),
        ("1E", Fraction(10**18)),
        ("1Ki", Fraction(1024)),
        ("1Mi", Fraction(2**20)),
        ("2Gi", Fraction(2**31)),
        ("1Ti", Fraction(2**40)),
        ("1Pi", Fraction(2**50)),
        ("1Ei", Fraction(2**60)),
        ("10.5Gi", Fraction(21 * 2**29)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1e-3", Fraction(1, 1000)),
        ("1E+2", Fraction(100)),
    ],
)
def test_a_quantity_has_its_exact_value(raw: str | int, value: Fraction) -> None:
    assert parse_quantity(raw) == value


@pytest.mark.parametrize(
    ("raw", "allowed"),
    [
        ("", "decimal number"),
        ("x", "decimal number"),
        ("1 Gi", "decimal number"),
        ("1gi", "decimal number"),
        ("1Kii", "decimal number"),
        ("--1", "decimal number"),
        (".", "decimal number"),
        ("1e1.5", "decimal number"),  # matches the pattern of the CRD, and Kubernetes refuses it
        ("1\n", "decimal number"),
        ("١", "decimal number"),
        ("NaN", "decimal number"),
        ("inf", "decimal number"),
        ("1e65", "exponent between -64 and 64"),
        ("1e-65", "exponent between -64 and 64"),
        ("1e999999999", "exponent between -64 and 64"),
        ("9" * 65, "at most 64 characters"),
        ("1" * 5000, "at most 64 characters"),
        (True, "integer or a string"),
        (1.5, "integer or a string"),
        (None, "integer or a string"),
        (["1"], "integer or a string"),
    ],
)
def test_what_is_no_quantity_is_refused_with_what_is_allowed(raw: object, allowed: str) -> None:
    with pytest.raises(QuantityError, match=allowed) as refused:
        parse_quantity(raw)
    assert len(str(refused.value)) < 250
    assert allowed in refused.value.detail


def test_spellings_are_equal_by_value() -> None:
    assert is_same_quantity("2Gi", "2048Mi")
    assert is_same_quantity(2147483648, "2Gi")
    assert is_same_quantity("1000m", 1)
    assert not is_same_quantity("2G", "2Gi")


@pytest.mark.parametrize(
    ("amount", "unit", "units"),
    [
        ("10.5Gi", GIBI, 11),
        ("10Gi", GIBI, 10),
        ("1", MEBI, 1),
        ("0", MEBI, 0),
        ("1500u", MILLI, 2),
        ("1500m", MILLI, 1500),
        ("-1500m", Fraction(1), -1),
    ],
)
def test_whole_units_are_rounded_up(amount: str, unit: Fraction, units: int) -> None:
    assert round_up(parse_quantity(amount), unit) == units


def test_the_pattern_is_the_one_of_the_specification() -> None:
    assert PATTERN == (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
        r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    )
    assert re.search(PATTERN, "1e1.5")
