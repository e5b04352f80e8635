from __future__ import annotations

import pytest

from compute_pod_provider.answers import derive_cause, judge_answer
from compute_pod_provider.plan import PostResult


@pytest.mark.spec("PP-21")
@pytest.mark.parametrize(
    ("code", "message", "result"),
    [
        (422, 'Pod "n" is invalid: spec.containers[0].ports: wrong', PostResult.REFUSED),
        (403, 'pods "n" is forbidden: exceeded quota: q, requested: cpu=1', PostResult.QUOTA),
        (
            403,
            'pods "n" is forbidden: violates PodSecurity "restricted:latest"',
            PostResult.REFUSED,
        ),
        (403, 'pods is forbidden: User "u" cannot create resource "pods"', None),
        (403, 'pods "n" is forbidden: namespace x because it is being terminated', None),
        (400, 'admission webhook "w" denied the request: no', PostResult.REFUSED),
        (500, 'failed calling webhook "w"', None),
        (404, 'namespaces "n" not found', None),
    ],
)
def test_only_answers_about_the_pod_are_verdicts(
    code: int, message: str, result: PostResult | None
) -> None:
    assert judge_answer(code, message) is result


def test_a_cause_is_the_first_line_without_the_name() -> None:
    assert derive_cause('pods "n" is forbidden: violates PodSecurity\nmore') == (
        "violates PodSecurity"
    )
    assert len(derive_cause("x" * 10_000)) == 300
