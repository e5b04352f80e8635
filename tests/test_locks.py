"""Locks say which releases and which bytes, and belong to the dependency tables beside them."""

import re

import pytest

from tools import locks
from tools.workspace import OPERATORS, PACKAGES, ROOT, Package


def test_the_locks_are_current() -> None:
    assert not locks.problems()


def test_every_locked_release_is_pinned_by_hash() -> None:
    for target in locks.TARGETS:
        entries = re.split(r"\n(?=\S)", target.path.read_text("utf-8").strip())
        assert all("==" in entry and "--hash=sha256:" in entry for entry in entries), target.name


def test_no_lock_holds_a_package_of_ours() -> None:
    for target in locks.TARGETS:
        assert "datum-compute-" not in target.path.read_text("utf-8"), target.name


def test_a_moved_dependency_table_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = locks.dependency_tables() | {"packages/new/pyproject.toml": {"dependencies": ["x"]}}
    monkeypatch.setattr(locks, "dependency_tables", lambda: moved)
    assert locks.problems() == ["a pyproject.toml moved on without the locks"]


def test_the_workspace_lists_every_package_folder() -> None:
    assert sorted(PACKAGES) == sorted(
        path.name for path in (ROOT / "packages").iterdir() if path.is_dir()
    )


@pytest.mark.parametrize("folder", OPERATORS)
def test_images_can_export_traces(folder: str) -> None:
    """An endpoint set for a whole cluster reaches every pod of it."""
    locked = (ROOT / "locks" / f"{folder}.txt").read_text("utf-8")
    assert re.search(r"^opentelemetry-exporter-otlp-proto-http==", locked, re.MULTILINE)


def test_siblings_come_before_those_that_need_them() -> None:
    assert Package("cell-operator").siblings() == (
        "api-types",
        "kubeconfig",
        "operator-kit",
        "quota-client",
    )
    assert Package("quota-client").siblings() == ("kubeconfig",)
