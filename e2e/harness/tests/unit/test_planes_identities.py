from __future__ import annotations

import csv

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.planes.identities import ADMIN, Identity, Tokens, identities_of
from e2e.harness.planes.topology import FULL, SINGLE


def test_every_cell_has_an_identity_and_the_admin_is_master() -> None:
    users = {identity.user for identity in identities_of(FULL)}
    assert {"compute:cell:dfw-1", "compute:cell:ord-1"} <= users
    assert "system:serviceaccount:compute-system:compute-management-operator" in users
    assert ADMIN.groups == ("system:masters",)
    assert not any("compute:cell" in identity.user for identity in identities_of(SINGLE))


def test_token_is_good_for_one_plane_and_one_user() -> None:
    tokens = Tokens(["a", "b"], [ADMIN, Identity("u")])
    assert len({tokens.of(plane, user).token for plane in "ab" for user in (ADMIN.user, "u")}) == 4


def test_token_file_has_a_line_per_user_that_the_server_can_read() -> None:
    tokens = Tokens(["hub"], [ADMIN, Identity("u", ("g1", "g2")), Identity("alone")])
    lines = list(csv.reader(tokens.render("hub").splitlines()))
    assert lines[0] == [tokens.of("hub").token, ADMIN.user, ADMIN.user, "system:masters"]
    assert lines[1] == [tokens.of("hub", "u").token, "u", "u", "g1,g2"]
    assert lines[2] == [tokens.of("hub", "alone").token, "alone", "alone"]


def test_error_for_an_unknown_user_lists_the_known_ones() -> None:
    with pytest.raises(PlanesError, match="planes-admin"):
        Tokens(["hub"], [ADMIN]).of("hub", "nobody")
