from __future__ import annotations

import base64

import yaml

from compute_sim_planes.json_types import JsonValue, objects_at, string_at
from e2e.harness.access.certificates import KeyPair
from e2e.harness.access.kubeconfig import Context, Token, render_kubeconfig


def a_context(name: str, credential: KeyPair | Token) -> Context:
    return Context(name, f"https://127.0.0.1/{name}", b"authority", credential)


def test_every_plane_has_its_context_and_the_first_is_current() -> None:
    contexts = [a_context("hub", Token("t1")), a_context("dfw-1", Token("t2"))]
    kubeconfig: JsonValue = yaml.safe_load(render_kubeconfig(contexts))
    assert string_at(kubeconfig, "current-context") == "hub"
    for listed in ("clusters", "users", "contexts"):
        assert [string_at(entry, "name") for entry in objects_at(kubeconfig, listed)] == [
            "hub",
            "dfw-1",
        ]
    servers = [string_at(c, "cluster", "server") for c in objects_at(kubeconfig, "clusters")]
    assert servers == ["https://127.0.0.1/hub", "https://127.0.0.1/dfw-1"]
    assert [string_at(user, "user", "token") for user in objects_at(kubeconfig, "users")] == [
        "t1",
        "t2",
    ]


def test_credentials_are_inside_the_file() -> None:
    text = render_kubeconfig([a_context("hub", KeyPair(b"certificate", b"key"))])
    kubeconfig: JsonValue = yaml.safe_load(text)
    (user,) = objects_at(kubeconfig, "users")
    (cluster,) = objects_at(kubeconfig, "clusters")
    assert base64.b64decode(string_at(user, "user", "client-certificate-data")) == b"certificate"
    assert base64.b64decode(string_at(user, "user", "client-key-data")) == b"key"
    embedded = string_at(cluster, "cluster", "certificate-authority-data")
    assert base64.b64decode(embedded) == b"authority"
    assert "insecure" not in text
