"""Pinned releases are kept fresh by a bot, and a weakness can be reported in private."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tools.locks import QUARANTINE, TARGETS
from tools.workspace import ROOT

BOT: dict[str, Any] = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text("utf-8"))
SECURITY = (ROOT / "SECURITY.md").read_text("utf-8")
THREATS = (ROOT / "docs/explanation/threat-model.md").read_text("utf-8")


def updates(ecosystem: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [one for one in BOT["updates"] if one["package-ecosystem"] == ecosystem]
    return found


@pytest.mark.spec("AT-25")
def test_the_bot_looks_after_every_lock_action_and_go_module() -> None:
    folders = {f"/{target.path.relative_to(ROOT).parent.as_posix()}" for target in TARGETS}
    assert folders == {updates("pip")["directory"]}
    assert updates("github-actions")["directory"] == "/"
    modules = {
        f"/{path.parent.relative_to(ROOT).as_posix()}"
        for path in ROOT.glob("e2e/harness/programs/*/go.mod")
    }
    assert set(updates("gomod")["directories"]) == modules


@pytest.mark.spec("AT-25")
def test_the_bot_waits_as_long_as_the_locks_do() -> None:
    days = int(QUARANTINE.removesuffix(" days"))
    assert {one["cooldown"]["default-days"] for one in BOT["updates"]} == {days}


@pytest.mark.spec("AT-25")
def test_a_weakness_is_reported_in_private() -> None:
    paragraph = " ".join(SECURITY.split("\n\n")[1].split())
    assert "private vulnerability reporting" in paragraph
    assert "Report a vulnerability" in paragraph
    assert "do not open a public issue" in paragraph


@pytest.mark.spec("AT-25")
def test_the_threat_model_counts_identities_by_role() -> None:
    assert "identity per plane" not in THREATS
    assert "every project plane sees the same one" in " ".join(THREATS.split())
