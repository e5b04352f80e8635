"""Names that Karmada derives: of bindings, Works and execution spaces. Pure."""

from __future__ import annotations

from typing import Final

from compute_sim_planes.api_server.sources import SUFFIX_LETTERS
from compute_sim_planes.karmada.kinds import (
    CLUSTER_NAMESPACE,
    EXECUTION_PREFIX,
    SYSTEM_NAMESPACE,
)

_RESERVED: Final = frozenset({SYSTEM_NAMESPACE, CLUSTER_NAMESPACE})
# `--skipped-propagating-namespaces`, whose default is `kube-.*`.
_SKIPPED_PREFIX: Final = "kube-"


def derive_binding_name(kind: str, name: str) -> str:
    return f"{name.replace(':', '.')}-{kind}".lower()


def derive_work_name(kind: str, namespace: str, name: str) -> str:
    """The object's name and a hash of what it is and where: the same in every execution space."""
    name = name.replace(":", ".").lower()
    whole = "-".join(part for part in (namespace, name, kind) if part).lower()
    return f"{name}-{_spell(_hash(whole.encode()))}"


def derive_execution_space(cluster: str) -> str:
    return f"{EXECUTION_PREFIX}{cluster}"


def find_cluster(execution_space: str) -> str:
    """Whose execution space that is; empty for any other namespace."""
    is_one = execution_space.startswith(EXECUTION_PREFIX)
    return execution_space.removeprefix(EXECUTION_PREFIX) if is_one else ""


def is_propagated(namespace: str) -> bool:
    """Whether objects of a namespace are looked at; those of the hub's own never are."""
    is_own = namespace in _RESERVED or namespace.startswith(EXECUTION_PREFIX)
    return not is_own and not namespace.startswith(_SKIPPED_PREFIX)


def _hash(text: bytes) -> int:
    """FNV-1a of 32 bits."""
    value = 0x811C9DC5
    for byte in text:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def _spell(number: int) -> str:
    """Its decimal digits in letters that spell no word."""
    return "".join(SUFFIX_LETTERS[ord(digit) % len(SUFFIX_LETTERS)] for digit in str(number))
