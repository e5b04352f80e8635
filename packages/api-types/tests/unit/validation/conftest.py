"""The two fixtures of api.md 13, a way to change them by path, and a way to judge the outcome."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import pytest

from compute_api_types.labels import SSH_KEYS
from compute_api_types.validation import (
    CannotDecide,
    Document,
    ErrorKind,
    Facts,
    Json,
    review_workload,
)

# The letters that api.md 12.3 and 13 use for paths.
TEMPLATE: Final = "spec.template"
LETTERS: Final = {
    "T": TEMPLATE,
    "S": f"{TEMPLATE}.spec",
    "P": "spec.placements",
    "M": "spec.placements[0].scaleSettings.metrics",
    "K": f"{TEMPLATE}.annotations[{SSH_KEYS}]",
    "C": f"{TEMPLATE}.spec.runtime.sandbox.containers[0]",
}
STORAGE: Final = "disk.template.spec.resources.requests[storage]"
KINDS: Final = {
    "Required": ErrorKind.REQUIRED,
    "Invalid": ErrorKind.INVALID,
    "NotSupported": ErrorKind.NOT_SUPPORTED,
    "Forbidden": ErrorKind.FORBIDDEN,
    "Duplicate": ErrorKind.DUPLICATE,
    "NotFound": ErrorKind.NOT_FOUND,
    "InternalError": ErrorKind.INTERNAL_ERROR,
}
_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")

Changes: TypeAlias = "Mapping[str, Json]"
Build: TypeAlias = "Callable[[str, Changes], Document]"
Judge: TypeAlias = "Callable[[Document, Document | None, Facts], list[str] | CannotDecide]"
Spell: TypeAlias = "Callable[[Sequence[str]], list[str]]"


def expand(path: str) -> str:
    """`P[0].name` → `spec.placements[0].name`, `B(1)` → the storage request of volume 1."""
    path = re.sub(r"^B\((\d+)\)$", rf"S.volumes[\1].{STORAGE}", path)
    return re.sub(r"^([A-Z])(?=$|[.\[])", lambda letter: LETTERS[letter[1]], path)


def changed(value: Json, steps: Sequence[str], wanted: Json) -> Json:
    """The same value with something else at a place below it; None takes away what is there."""
    if not steps:
        return wanted
    step, *rest = steps
    if isinstance(value, Sequence) and not isinstance(value, str):
        elements: list[Json] = list(value)
        position = int(step)
        if position == len(elements):
            elements.append(None)
        elements[position] = changed(elements[position], rest, wanted)
        return elements
    members: dict[str, Json] = dict(value) if isinstance(value, Mapping) else {}
    members[step] = changed(members.get(step), rest, wanted)
    return {name: member for name, member in members.items() if member is not None}


def _sandbox() -> Document:
    return {
        "metadata": {"name": "test", "namespace": "default"},
        "spec": {
            "template": {
                "spec": {
                    "runtime": {
                        "resources": {"instanceType": "datumcloud/d1-standard-2"},
                        "sandbox": {
                            "containers": [
                                {"name": "container1", "image": "registry.tld/image:tag"}
                            ]
                        },
                    },
                    "networkInterfaces": [{"network": {"name": "default"}}],
                }
            },
            "placements": [
                {
                    "name": "placement1",
                    "cityCodes": ["DFW"],
                    "scaleSettings": {"minReplicas": 1},
                }
            ],
        },
    }


def an_ssh_key(algorithm: str = "ssh-ed25519") -> str:
    name = algorithm.encode()
    blob = len(name).to_bytes(4, "big") + name + (32).to_bytes(4, "big") + bytes(32)
    return f"{algorithm} {base64.b64encode(blob).decode()}"


def _virtual_machine() -> Document:
    changes: Changes = {
        f"T.metadata.annotations[{SSH_KEYS}]": f"ubuntu:{an_ssh_key()} me@example.net",
        "S.runtime.sandbox": None,
        "S.runtime.virtualMachine": {"volumeAttachments": [{"name": "boot"}]},
        "S.volumes": [
            {
                "name": "boot",
                "disk": {
                    "template": {
                        "spec": {
                            "type": "pd-standard",
                            "populator": {"image": {"name": "datumcloud/ubuntu-2204-lts"}},
                        }
                    }
                },
            }
        ],
    }
    return _changed_document(_sandbox(), changes)


def _changed_document(document: Document, changes: Changes) -> Document:
    for path, wanted in changes.items():
        steps = [key or name for key, name in _STEP.findall(expand(path))]
        result = changed(document, steps, wanted)
        assert isinstance(result, Mapping)
        document = result
    return document


@pytest.fixture
def build() -> Build:
    """`build("sandbox", {"P[0].name": ""})`: a fixture of api.md 13 with changes by path."""

    def build(start: str, changes: Changes) -> Document:
        starts = {"empty": dict[str, Json], "sandbox": _sandbox, "vm": _virtual_machine}
        return _changed_document(starts[start](), changes)

    return build


@pytest.fixture
def judge() -> Judge:
    """Errors as the tables write them, `Required spec.placements`, in order."""

    def judge(wanted: Document, stored: Document | None, facts: Facts) -> list[str] | CannotDecide:
        errors = review_workload(wanted, stored, facts)
        if isinstance(errors, CannotDecide):
            return errors
        words = {kind: word for word, kind in KINDS.items()}
        return [f"{words[error.kind]} {error.path.text}" for error in errors]

    return judge


@pytest.fixture
def spell() -> Spell:
    """`["Required P[0].name"]` with the letters written out."""

    def spell(expected: Sequence[str]) -> list[str]:
        words = [error.partition(" ") for error in expected]
        return [f"{kind} {expand(path)}" for kind, _, path in words]

    return spell


@pytest.fixture
def ssh_key() -> Callable[[str], str]:
    """An `algorithm base64` pair; the blob names the algorithm."""
    return an_ssh_key
