from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.core.backoff import KEY_BACKOFF, PLANE_BACKOFF, Backoff

CHANCE = st.floats(0, 1, exclude_max=True)


@given(
    backoff=st.sampled_from([KEY_BACKOFF, PLANE_BACKOFF]),
    attempt=st.integers(1, 100),
    first=CHANCE,
    second=CHANCE,
)
def test_a_delay_is_never_shorter_than_the_one_before_until_the_cap(
    backoff: Backoff, attempt: int, first: float, second: float
) -> None:
    before, after = backoff.delay(attempt, first), backoff.delay(attempt + 1, second)
    is_capped = backoff.delay(attempt, 0.0) == backoff.cap
    assert is_capped or before <= after
    assert after <= backoff.cap
