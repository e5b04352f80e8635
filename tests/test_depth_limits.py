"""Neither quota-client nor kubeconfig knows api-types: both have the same limit of depth anew."""

import pytest

from compute_api_types import depth
from compute_kubeconfig import strict_yaml
from compute_quota_client import _depth


def test_all_limits_of_depth_are_the_same() -> None:
    assert _depth.MAX_DEPTH == depth.MAX_DEPTH
    assert strict_yaml.MAX_DEPTH == depth.MAX_DEPTH
    assert _depth.TOO_DEEP == depth.TOO_DEEP


@pytest.mark.parametrize("levels", [1, depth.MAX_DEPTH, depth.MAX_DEPTH + 1, 5000])
def test_both_checks_of_depth_agree(levels: int) -> None:
    raw = b"[" * levels + b'"\\\\\\"]"' + b"]" * levels
    assert _depth.is_too_deep(raw) is depth.is_too_deep(raw) is (levels > depth.MAX_DEPTH)
