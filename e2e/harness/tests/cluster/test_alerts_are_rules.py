"""promtool accepts the shipped alerting rules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from e2e.harness.deploy.manifests import DEPLOY
from e2e.harness.programs.binaries import CHECKERS
from e2e.harness.programs.build import find_programs
from e2e.harness.programs.store import Store

ALERTS = DEPLOY / "components" / "monitoring" / "alerts.yaml"


def check(rules: Path) -> subprocess.CompletedProcess[str]:
    promtool = find_programs(CHECKERS, Store.of_user())["promtool"]
    command = [str(promtool), "check", "rules", "--lint=all", "--lint-fatal", str(rules)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_promtool_takes_every_rule(tmp_path: Path) -> None:
    groups = yaml.safe_load(ALERTS.read_text("utf-8"))["spec"]
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(groups), "utf-8")
    done = check(rules)
    assert done.returncode == 0, done.stdout + done.stderr
    count = sum(len(group["rules"]) for group in groups["groups"])
    assert f"SUCCESS: {count} rules found" in done.stdout


def test_promtool_would_refuse_what_is_no_rule(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("groups: [{name: a, rules: [{alert: A, expr: 'sum(']}]", "utf-8")
    assert check(rules).returncode != 0
