"""Checks an operator's Containerfile (`faults.md` S6).

Built images are checked elsewhere. Here the file is checked so that it cannot build anything else:
two stages from one pinned base, no shell, and a last stage that only copies and sets the start
command. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Instructions allowed in the last stage. RUN is not, because it could add any file.
FINAL_INSTRUCTIONS: Final = frozenset({"FROM", "ARG", "LABEL", "COPY", "ENV", "USER", "ENTRYPOINT"})
KNOWN: Final = FINAL_INSTRUCTIONS | {"RUN", "WORKDIR"}
PINNED: Final = re.compile(r"[a-z0-9.-]+(?:/[a-z0-9._-]+)+(?::[\w.-]+)?@sha256:[0-9a-f]{64}")
REQUIRED_LABELS: Final = frozenset(
    f"org.opencontainers.image.{name}"
    for name in ("title", "description", "licenses", "source", "version", "revision")
)
USER: Final = "65532:65532"
TOOLS: Final = ("pip", "sh", "bash", "apt", "apt-get", "gcc", "curl", "wget")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, its continued lines joined."""

    word: str
    rest: str

    @property
    def words(self) -> list[str]:
        """The words of an exec form; empty for the shell form."""
        if not self.rest.startswith("["):
            return []
        parsed: list[str] = json.loads(self.rest)
        return parsed


def parse(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    split = (line.split(None, 1) for line in joined.splitlines() if line.strip())
    return [Instruction(parts[0].upper(), " ".join(parts[1].split())) for parts in split]


def find_problems(text: str, binary: str) -> list[str]:
    """The violations in an operator's Containerfile."""
    instructions = parse(text)
    starts = [index for index, instruction in enumerate(instructions) if instruction.word == "FROM"]
    if len(starts) < 2:
        return ["has one stage: what builds would ship"]
    final = instructions[starts[-1] :]
    return [
        *_check_base(instructions[: starts[0]], [instructions[index] for index in starts]),
        *_check_words(instructions),
        *_check_final(final),
        *_check_start(final, binary),
    ]


def _check_base(head: list[Instruction], stages: list[Instruction]) -> Iterator[str]:
    bases = [instruction.rest for instruction in head if instruction.word == "ARG"]
    names = [base.partition("=") for base in bases if base.startswith("BASE_IMAGE")]
    if not names or not PINNED.fullmatch(names[0][2]):
        yield "BASE_IMAGE is not pinned by a digest"
    # Interpreter paths in the virtual environment are valid on the same base image only.
    if any(stage.rest.split()[0] != "${BASE_IMAGE}" for stage in stages):
        yield "a stage is not from BASE_IMAGE"


def _check_words(instructions: list[Instruction]) -> Iterator[str]:
    for instruction in instructions:
        if instruction.word not in KNOWN:
            yield f"{instruction.word} is not used here"
        if instruction.word in {"RUN", "ENTRYPOINT"} and not instruction.words:
            yield f"{instruction.word} needs a shell: {instruction.rest}"
        if (
            instruction.word == "RUN"
            and instruction.words
            and instruction.words[0].rsplit("/", 1)[-1] in TOOLS
        ):
            yield f"RUN starts {instruction.words[0]}"
        if (
            instruction.word == "RUN"
            and "install" in instruction.words
            and "--no-index" not in instruction.words
        ):
            yield "an install asks the network"


def _check_final(final: list[Instruction]) -> Iterator[str]:
    for instruction in final:
        if instruction.word not in FINAL_INSTRUCTIONS:
            yield f"{instruction.word} in the last stage"
    copies = [instruction.rest for instruction in final if instruction.word == "COPY"]
    if copies != ["--from=build /app /app"]:
        yield "the last stage copies something else than the environment"
    labels = {
        pair.partition("=")[0]
        for instruction in final
        if instruction.word == "LABEL"
        for pair in re.findall(r"(\S+=(?:\"[^\"]*\"|\S+))", instruction.rest)
    }
    for missing in sorted(REQUIRED_LABELS - labels):
        yield f"label {missing} is missing"


def _check_start(final: list[Instruction], binary: str) -> Iterator[str]:
    if [instruction.rest for instruction in final if instruction.word == "USER"] != [USER]:
        yield f"does not run as {USER}"
    if [instruction.words for instruction in final if instruction.word == "ENTRYPOINT"] != [
        [f"/app/bin/{binary}"]
    ]:
        yield f"does not start /app/bin/{binary}"
