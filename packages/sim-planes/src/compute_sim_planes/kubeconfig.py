"""Kubeconfig files for simulated planes: one context per plane, with a token."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from compute_sim_planes.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Context:
    """The address of one plane and the token of one user."""

    name: str
    server: str
    token: str
    authority: bytes | None = None


def render_kubeconfig(contexts: Iterable[Context]) -> str:
    """The text of the file; the first context is the current one."""
    listed = list(contexts)
    clusters: list[JsonValue] = [
        {"name": context.name, "cluster": _cluster(context)} for context in listed
    ]
    users: list[JsonValue] = [
        {"name": context.name, "user": {"token": context.token}} for context in listed
    ]
    entries: list[JsonValue] = [
        {"name": context.name, "context": {"cluster": context.name, "user": context.name}}
        for context in listed
    ]
    document: JsonObject = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "users": users,
        "contexts": entries,
        "current-context": listed[0].name if listed else "",
    }
    return yaml.safe_dump(document, sort_keys=False)


def _cluster(context: Context) -> JsonObject:
    cluster: JsonObject = {"server": context.server}
    if context.authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(context.authority).decode()
    return cluster


def write_kubeconfig(path: Path, contexts: Iterable[Context]) -> None:
    """Write the file readable by its owner only: it holds tokens."""
    path.touch(mode=0o600)
    path.write_text(render_kubeconfig(contexts), "utf-8")
