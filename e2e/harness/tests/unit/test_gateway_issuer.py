from __future__ import annotations

import pytest

from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.json_types import JsonObject
from e2e.harness.gateway.issuer import parse_review

SOMEBODY: JsonObject = {
    "username": "system:serviceaccount:compute-system:compute-management-operator",
    "groups": ["system:serviceaccounts", "system:authenticated"],
}


def a_review(**status: object) -> JsonObject:
    status_fields = {"authenticated": True, "audiences": ["compute-milo"], "user": SOMEBODY}
    return {"status": {**status_fields, **status}}  # type: ignore[dict-item]  # JSON by construction


def test_a_token_made_for_milo_is_its_users() -> None:
    assert parse_review(a_review()) == User(
        "system:serviceaccount:compute-system:compute-management-operator",
        ("system:serviceaccounts", "system:authenticated"),
    )


@pytest.mark.parametrize(
    "status",
    [
        {"authenticated": False},
        {"audiences": []},
        {"audiences": ["compute-hub"]},
        {"audiences": None},
    ],
    ids=str,
)
def test_an_unknown_token_or_one_for_another_audience_is_refused(status: dict[str, object]) -> None:
    assert parse_review(a_review(**status)) is None


def test_no_answer_is_no_user() -> None:
    assert parse_review({}) is None
