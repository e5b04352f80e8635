"""Containerfiles of both operators, by their rules as text (S6)."""

from __future__ import annotations

import pytest

from e2e.deploy_checks.containerfile import find_problems, parse
from tools.workspace import OPERATORS, ROOT, Package


def text_of(folder: str) -> str:
    return (Package(folder).path / "Containerfile").read_text("utf-8")


@pytest.mark.spec("S6")
@pytest.mark.parametrize("folder", OPERATORS)
def test_containerfile_keeps_every_rule(folder: str) -> None:
    assert find_problems(text_of(folder), f"compute-{folder}") == []


@pytest.mark.parametrize("folder", OPERATORS)
def test_image_has_the_package_and_the_siblings_it_stands_on(folder: str) -> None:
    package = Package(folder)
    wanted = {Package(each).distribution for each in (*package.siblings(), folder)}
    runs = [each.words for each in parse(text_of(folder)) if each.word == "RUN"]
    installed = {word for words in runs for word in words if word.startswith("datum-compute-")}
    assert installed == wanted


@pytest.mark.parametrize("folder", OPERATORS)
def test_others_are_installed_by_the_hashes_of_the_lock(folder: str) -> None:
    instructions = parse(text_of(folder))
    lock = f"locks/{folder}.txt"
    assert (ROOT / lock).exists()
    copies = [each.rest for each in instructions if each.word == "COPY"]
    assert f"{lock} /build/lock.txt" in copies
    runs = [each.words for each in instructions if each.word == "RUN"]
    (locked,) = [words for words in runs if "/build/lock.txt" in words]
    assert "--require-hashes" in locked


def test_build_is_sent_what_it_copies_and_nothing_else() -> None:
    lines = (ROOT / ".containerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "**"
    sent = {line.removeprefix("!").rstrip("/") for line in rules[1:]}
    copied = {
        each.rest.split()[0]
        for folder in OPERATORS
        for each in parse(text_of(folder))
        if each.word == "COPY" and "--from" not in each.rest
    }
    assert {path if path.startswith("locks/") else path.split("/")[0] for path in copied} == sent


def test_the_files_differ_in_names_alone() -> None:
    first, *others = ([each.word for each in parse(text_of(folder))] for folder in OPERATORS)
    assert others == [first] * (len(OPERATORS) - 1)


# One change to a good file, and the error that follows.
FAULTS = [
    ("@sha256:", ":latest", "BASE_IMAGE is not pinned by a digest"),
    ("FROM ${BASE_IMAGE}\n", "FROM scratch\n", "a stage is not from BASE_IMAGE"),
    (
        "COPY --from=build /app /app",
        "COPY --from=build / /",
        "the last stage copies something else",
    ),
    ("USER 65532:65532\n", "USER nonroot\n", "does not run as 65532:65532"),
    ("USER 65532:65532\n", "", "does not run as 65532:65532"),
    ('ENTRYPOINT ["/app/bin/', 'ENTRYPOINT ["/bin/', "does not start /app/bin/"),
    ("ENTRYPOINT [", "RUN [", "RUN in the last stage"),
    ("USER 65532", "EXPOSE 1\nUSER 65532", "EXPOSE is not used here"),
    ("USER 65532", "ADD x /x\nUSER 65532", "ADD is not used here"),
    ("COPY locks/", "RUN apt-get update\nCOPY locks/", "RUN needs a shell: apt-get update"),
    ("COPY locks/", 'RUN ["/bin/sh", "-c", "x"]\nCOPY locks/', "RUN starts /bin/sh"),
    ('"--no-index", ', "", "an install asks the network"),
    ("image.licenses=", "image.license=", "label org.opencontainers.image.licenses is missing"),
]


@pytest.mark.parametrize(("good", "bad", "said"), FAULTS)
def test_fault_of_a_containerfile_is_found(good: str, bad: str, said: str) -> None:
    text = text_of("cell-operator")
    assert good in text
    problems = find_problems(text.replace(good, bad), "compute-cell-operator")
    assert [problem for problem in problems if problem.startswith(said)]


def test_one_stage_is_refused() -> None:
    text = text_of("cell-operator").partition("\nFROM ${BASE_IMAGE}\n")[0]
    assert find_problems(text, "compute-cell-operator") == ["has one stage: what builds would ship"]
