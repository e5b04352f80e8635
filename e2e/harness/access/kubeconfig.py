"""Kubeconfigs with one context per plane and embedded credentials. Pure.

Credentials are embedded, because the operators refuse a kubeconfig that refers to files outside its
own mount (operations.md 1.3), and because the file can then be copied.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from compute_sim_planes.json_types import JsonObject, JsonValue
from e2e.harness.access.certificates import KeyPair


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token of a plane's token file."""

    token: str


Credential: TypeAlias = KeyPair | Token


@dataclass(frozen=True, slots=True)
class Context:
    """Address and credential of one user on one plane."""

    name: str
    server: str
    authority: bytes
    credential: Credential


def render_kubeconfig(contexts: Sequence[Context]) -> str:
    """A kubeconfig with the first context as current."""
    clusters: list[JsonValue] = []
    users: list[JsonValue] = []
    listed: list[JsonValue] = []
    for context in contexts:
        cluster: JsonObject = {
            "server": context.server,
            "certificate-authority-data": _embedded(context.authority),
        }
        clusters.append({"name": context.name, "cluster": cluster})
        users.append({"name": context.name, "user": _user(context.credential)})
        pair: JsonObject = {"cluster": context.name, "user": context.name}
        listed.append({"name": context.name, "context": pair})
    document: JsonObject = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "users": users,
        "contexts": listed,
        "current-context": contexts[0].name,
    }
    return yaml.safe_dump(document, sort_keys=False)


def _user(credential: Credential) -> JsonObject:
    match credential:
        case Token(token=token):
            return {"token": token}
        case KeyPair(certificate=certificate, key=key):
            return {
                "client-certificate-data": _embedded(certificate),
                "client-key-data": _embedded(key),
            }


def _embedded(content: bytes) -> str:
    return base64.b64encode(content).decode()
