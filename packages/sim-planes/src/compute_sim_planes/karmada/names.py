"""Names that Karmada derives: of bindings, Works and execution spaces. Pure."""

from __future__ import annotations

from typing import Final

from compute_sim_planes.karmada.kinds import (
    CLUSTER_NAMESPACE,
    EXECUTION_PREFIX,
    SYSTEM_NAMESPACE,
)
from compute_sim_planes.time.sources import SUFFIX_LETTERS

_RESERVED: Final = frozenset({SYSTEM_NAMESPACE, CLUSTER_NAMESPACE})
# The default of `--skipped-propagating-namespaces` is `kube-.*`.
_SKIPPED_PREFIX: Final = "kube-"


def derive_binding_name(kind: str, name: str) -> str:
    return f"{name.replace(':', '.')}-{kind}".lower()


def derive_work_name(kind: str, namespace: str, name: str) -> str:
    """The object's name and a hash of kind, namespace and name: the same for every member."""
    name = name.replace(":", ".").lower()
    whole = "-".join(part for part in (namespace, name, kind) if part).lower()
    return f"{name}-{_spell(_hash(whole.encode()))}"


def derive_execution_space(cluster: str) -> str:
    return f"{EXECUTION_PREFIX}{cluster}"


def find_cluster(execution_space: str) -> str:
    """The cluster of an execution namespace; empty for any other namespace."""
    is_one = execution_space.startswith(EXECUTION_PREFIX)
    return execution_space.removeprefix(EXECUTION_PREFIX) if is_one else ""


def is_propagated(namespace: str) -> bool:
    """Whether objects in a namespace are propagated; those in the hub's own namespaces are not."""
    is_own = namespace in _RESERVED or namespace.startswith(EXECUTION_PREFIX)
    return not is_own and not namespace.startswith(_SKIPPED_PREFIX)


def _hash(text: bytes) -> int:
    """32-bit FNV-1a."""
    value = 0x811C9DC5
    for byte in text:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def _spell(number: int) -> str:
    """The decimal digits as letters that spell no word."""
    return "".join(SUFFIX_LETTERS[ord(digit) % len(SUFFIX_LETTERS)] for digit in str(number))
