"""The check list of built images sees what it is there for; building needs root and is not here."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.deploy_checks.containerfile import REQUIRED_LABELS
from tools.images.buildah import Configuration
from tools.images.checklist import (
    PACKED_LIMIT,
    UNPACKED_LIMIT,
    Check,
    check_configuration,
    check_files,
    check_size,
)
from tools.images.commands import ImagesError, check_tools, run
from tools.images.previous import check_out

BINARY = "compute-cell-operator"


def problems(checks: list[Check]) -> list[str]:
    return [check.name for check in checks if check.problem]


def configured(user: str = "65532:65532", entry: str = f"/app/bin/{BINARY}") -> Configuration:
    given = {"User": user, "Entrypoint": [entry], "labels": list(REQUIRED_LABELS)}
    return Configuration.model_validate(given)


def test_an_image_as_shipped_has_no_problem(tmp_path: Path) -> None:
    (tmp_path / "app" / "bin").mkdir(parents=True)
    (tmp_path / "app" / "bin" / BINARY).write_text("")
    assert problems(list(check_configuration(configured(), BINARY))) == []
    assert problems(list(check_files(tmp_path))) == []
    assert problems(list(check_size(UNPACKED_LIMIT, PACKED_LIMIT))) == []


@pytest.mark.parametrize("tool", ["bin/sh", "usr/bin/pip", "usr/bin/gcc"])
def test_a_program_for_intruders_is_found(tmp_path: Path, tool: str) -> None:
    path = tmp_path / tool
    path.parent.mkdir(parents=True)
    path.write_text("")
    path.chmod(0o755)
    assert problems(list(check_files(tmp_path))) == ["no shell, pip or compiler"]


def test_a_file_that_gives_rights_is_found(tmp_path: Path) -> None:
    path = tmp_path / "su-like"
    path.write_text("")
    path.chmod(0o4755)
    assert problems(list(check_files(tmp_path))) == ["no setuid file"]


def test_another_user_another_entry_and_missing_labels_are_found() -> None:
    assert problems(list(check_configuration(configured(user=""), BINARY))) == [
        "runs as 65532:65532"
    ]
    other = Configuration.model_validate({"User": "65532:65532", "Entrypoint": ["/bin/sh"]})
    assert problems(list(check_configuration(other, BINARY))) == [f"starts {BINARY}", "OCI labels"]


def test_what_is_too_large_is_found() -> None:
    assert len(problems(list(check_size(UNPACKED_LIMIT + 1, PACKED_LIMIT + 1)))) == 2


def test_without_root_one_line_says_what_to_do() -> None:
    with pytest.raises(ImagesError, match="run it with sudo"):
        check_tools(is_root=False)


def test_a_program_that_fails_is_named_with_its_last_words() -> None:
    with pytest.raises(ImagesError, match="ended with 3:\nno room"):
        run(["python3", "-c", "import sys; print('no room'); sys.exit(3)"])


def test_the_files_of_a_previous_version_are_taken_from_the_clone(tmp_path: Path) -> None:
    check_out("HEAD", tmp_path / "tree")
    assert (tmp_path / "tree" / "packages" / "cell-operator" / "Containerfile").is_file()
    assert not (tmp_path / "tree" / ".git").exists()


@pytest.mark.parametrize("revision", ["no-such-revision", "--output=/dev/null"])
def test_a_revision_that_the_clone_lacks_is_one_clear_line(tmp_path: Path, revision: str) -> None:
    with pytest.raises(ImagesError, match="name a commit or a tag that this clone has"):
        check_out(revision, tmp_path / "tree")
