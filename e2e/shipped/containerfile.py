"""The rules of an image that can be read off its Containerfile (`faults.md` S6).

What ends up in the image is checked on built ones; here it is checked that the file cannot build
anything else: two stages from one pinned base, no shell anywhere, and a last stage that copies what
was built and says how it starts. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# All that the last stage may say; above all no RUN, which would add files nobody listed.
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
        """The words of an exec form; empty when it is none, which would need a shell."""
        if not self.rest.startswith("["):
            return []
        parsed: list[str] = json.loads(self.rest)
        return parsed


def parse(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    split = (line.split(None, 1) for line in joined.splitlines() if line.strip())
    return [Instruction(found[0].upper(), " ".join(found[1].split())) for found in split]


def find_problems(text: str, binary: str) -> list[str]:
    """What is wrong with the Containerfile of an operator."""
    instructions = parse(text)
    starts = [index for index, found in enumerate(instructions) if found.word == "FROM"]
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
    bases = [found.rest for found in head if found.word == "ARG"]
    names = [base.partition("=") for base in bases if base.startswith("BASE_IMAGE")]
    if not names or not PINNED.fullmatch(names[0][2]):
        yield "BASE_IMAGE is not pinned by a digest"
    # Interpreter paths in the environment hold only on the base it was made on.
    if any(stage.rest.split()[0] != "${BASE_IMAGE}" for stage in stages):
        yield "a stage is not from BASE_IMAGE"


def _check_words(instructions: list[Instruction]) -> Iterator[str]:
    for found in instructions:
        if found.word not in KNOWN:
            yield f"{found.word} is not used here"
        if found.word in {"RUN", "ENTRYPOINT"} and not found.words:
            yield f"{found.word} needs a shell: {found.rest}"
        if found.word == "RUN" and found.words and found.words[0].rsplit("/", 1)[-1] in TOOLS:
            yield f"RUN starts {found.words[0]}"
        if found.word == "RUN" and "install" in found.words and "--no-index" not in found.words:
            yield "an install asks the network"


def _check_final(final: list[Instruction]) -> Iterator[str]:
    for found in final:
        if found.word not in FINAL_INSTRUCTIONS:
            yield f"{found.word} in the last stage"
    copies = [found.rest for found in final if found.word == "COPY"]
    if copies != ["--from=build /app /app"]:
        yield "the last stage copies something else than the environment"
    labels = {
        pair.partition("=")[0]
        for found in final
        if found.word == "LABEL"
        for pair in re.findall(r"(\S+=(?:\"[^\"]*\"|\S+))", found.rest)
    }
    for missing in sorted(REQUIRED_LABELS - labels):
        yield f"label {missing} is missing"


def _check_start(final: list[Instruction], binary: str) -> Iterator[str]:
    if [found.rest for found in final if found.word == "USER"] != [USER]:
        yield f"does not run as {USER}"
    if [found.words for found in final if found.word == "ENTRYPOINT"] != [[f"/app/bin/{binary}"]]:
        yield f"does not start /app/bin/{binary}"
