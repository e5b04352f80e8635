"""Users from a token file, in the format kube-apiserver reads: token,user,uid,"group1,group2"."""

from __future__ import annotations

import csv
from pathlib import Path

from compute_sim_planes.api_server.authz.identity import User, authenticated


class TokenFileError(ValueError):
    """A line without token, user and UID."""


def read_token_file(path: Path) -> dict[str, User]:
    users: dict[str, User] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            if not row:
                continue
            if len(row) < 3 or not row[0] or not row[1]:
                raise TokenFileError(f"reading {str(path)!r}, line {number}: needs token,user,uid")
            groups = tuple(name.strip() for name in row[3].split(",")) if len(row) > 3 else ()
            users[row[0]] = authenticated(row[1], *filter(None, groups), uid=row[2])
    return users
