"""Kubernetes quantities as exact numbers: parse, compare by value, round up to whole units.

A quantity arrives as an integer or as text in any spelling (`2Gi`, `2048Mi`, `2147483648`). Its
value is a `Fraction`, so that sums and comparisons are exact. Nothing here writes a quantity back
as text: copies across planes keep the original spelling (`docs/spec/api.md` 14, trap 4).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from compute_api_types.errors import ApiTypesError

PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The pattern of the CRDs (api.md 1). It lets through a fractional exponent, which the parser
refuses.
"""

# What Kubernetes' own parser takes: an exponent is a whole number.
_PARTS: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)

_SUFFIXES: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}

MILLI: Final = _SUFFIXES["m"]
MEBI: Final = _SUFFIXES["Mi"]
GIBI: Final = _SUFFIXES["Gi"]

# `1e999999999` is nine characters and a gigabyte of digits. A real amount needs 19 digits before
# the point (2⁶³) and 9 behind it (nano); both limits leave ample room above that.
_LONGEST_TEXT: Final = 64
_LARGEST_EXPONENT: Final = 64


class QuantityError(ApiTypesError):
    """The text is no quantity; the message has what is allowed."""

    def __init__(self, raw: object, detail: str) -> None:
        shown = repr(raw)
        if len(shown) > _LONGEST_TEXT:
            shown = f"{shown[:_LONGEST_TEXT]}..."
        super().__init__(f"parsing quantity {shown}: {detail}")
        self.detail: Final = detail


def parse_quantity(raw: object) -> Fraction:
    """The exact value of a quantity as it came from the wire, an integer or a string.

    Raises:
        QuantityError: when it is no quantity.
    """
    if isinstance(raw, str):
        return _parse_text(raw)
    # A JSON `true` is an int to Python and never a quantity to Kubernetes.
    if isinstance(raw, int) and not isinstance(raw, bool):
        return Fraction(raw)
    raise QuantityError(raw, "must be an integer or a string")


def _parse_text(text: str) -> Fraction:
    if len(text) > _LONGEST_TEXT:
        raise QuantityError(text, f"must have at most {_LONGEST_TEXT} characters")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise QuantityError(
            text, "must be a decimal number with an optional suffix such as m, k, M, Gi or e3"
        )
    number = Fraction(parts["number"])
    if parts["suffix"]:
        return number * _SUFFIXES[parts["suffix"]]
    if parts["exponent"]:
        return number * _power_of_ten(text, int(parts["exponent"]))
    return number


def _power_of_ten(text: str, exponent: int) -> Fraction:
    if abs(exponent) > _LARGEST_EXPONENT:
        raise QuantityError(
            text, f"must have an exponent between -{_LARGEST_EXPONENT} and {_LARGEST_EXPONENT}"
        )
    return Fraction(10) ** exponent


def is_same_quantity(one: str | int, other: str | int) -> bool:
    """Whether two spellings mean the same amount: `2Gi` and `2048Mi` do.

    Raises:
        QuantityError: when either is no quantity.
    """
    return parse_quantity(one) == parse_quantity(other)


def round_up(amount: Fraction, unit: Fraction) -> int:
    """How many whole units cover the amount: 1.5 GiB in units of 1 GiB is 2 (api.md 14, trap 4)."""
    # Floor division of the negated amount is a ceiling without a float in between.
    return -(-amount // unit)
