import re
from decimal import Decimal, localcontext
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from compute_api_types.quantity import PATTERN, QuantityError, parse_quantity, round_up

# A busy machine makes an example slow, not wrong.
UNHURRIED = settings(deadline=None)

NUMBERS = st.from_regex(r"[+-]?([0-9]{1,15}(\.[0-9]{0,9})?|\.[0-9]{1,9})", fullmatch=True)
SUFFIXES = {
    "": Decimal(1),
    **{suffix: Decimal(10) ** (-9 + 3 * index) for index, suffix in enumerate("num")},
    **{suffix: Decimal(10) ** (3 + 3 * index) for index, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Decimal(2) ** (10 + 10 * index) for index, suffix in enumerate("KMGTPE")},
}
QUANTITIES = st.tuples(NUMBERS, st.sampled_from(sorted(SUFFIXES)))


def exact(number: str, suffix: str) -> Decimal:
    """The value by the other exact arithmetic Python has."""
    with localcontext() as context:
        context.prec = 200
        return Decimal(number) * SUFFIXES[suffix]


@given(QUANTITIES)
@UNHURRIED
def test_a_quantity_is_exact_against_decimal(quantity: tuple[str, str]) -> None:
    assert parse_quantity("".join(quantity)) == Fraction(exact(*quantity))


@given(NUMBERS, st.integers(min_value=-64, max_value=64), st.sampled_from("eE"))
@UNHURRIED
def test_an_exponent_is_exact_against_decimal(number: str, exponent: int, sign: str) -> None:
    with localcontext() as context:
        context.prec = 200
        expected = Decimal(number).scaleb(exponent)
    assert parse_quantity(f"{number}{sign}{exponent}") == Fraction(expected)


@given(st.lists(QUANTITIES, max_size=20))
@UNHURRIED
def test_sums_are_exact_against_decimal(quantities: list[tuple[str, str]]) -> None:
    with localcontext() as context:
        context.prec = 200
        expected = sum((exact(*each) for each in quantities), Decimal(0))
    total = sum((parse_quantity("".join(each)) for each in quantities), Fraction(0))
    assert total == Fraction(expected)


@given(QUANTITIES, QUANTITIES)
@UNHURRIED
def test_order_is_that_of_decimal(one: tuple[str, str], other: tuple[str, str]) -> None:
    smaller = parse_quantity("".join(one)) < parse_quantity("".join(other))
    assert smaller == (exact(*one) < exact(*other))


@given(QUANTITIES, st.sampled_from([Fraction(1), Fraction(1, 1000), Fraction(2**20)]))
@UNHURRIED
def test_whole_units_cover_the_amount_and_one_less_does_not(
    quantity: tuple[str, str], unit: Fraction
) -> None:
    amount = parse_quantity("".join(quantity))
    units = round_up(amount, unit)
    assert units * unit >= amount
    assert (units - 1) * unit < amount


@given(st.text(max_size=20) | st.from_regex(PATTERN))
@UNHURRIED
def test_any_text_has_a_value_or_is_refused_and_what_has_one_fits_the_schema(text: str) -> None:
    try:
        parse_quantity(text)
    except QuantityError:
        return
    assert re.fullmatch(PATTERN, text)
