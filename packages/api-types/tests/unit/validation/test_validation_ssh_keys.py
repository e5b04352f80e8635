"""What counts as an entry of authorized_keys (rule 4)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from compute_api_types.validation.ssh_keys import ALGORITHMS, is_authorized_key

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_key_of_every_known_algorithm_is_an_entry(
    algorithm: str, ssh_key: Callable[[str], str]
) -> None:
    assert is_authorized_key(ssh_key(algorithm))


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("{key}", id="alone"),
        pytest.param("  {key}  ", id="blanks around it"),
        pytest.param("{key} me@home", id="comment"),
        pytest.param("{key} a comment of words ssh-rsa", id="comment of several words"),
        pytest.param("\t{key}\tcomment", id="tabs"),
        pytest.param("no-pty {key}", id="option"),
        pytest.param("no-pty,no-X11-forwarding   {key}", id="options and many blanks"),
        pytest.param('command="echo a b" {key}', id="blanks in quotes"),
        pytest.param(r'command="echo \"a b\" c",no-pty {key} me', id="escaped quotes"),
        pytest.param(r'environment="A=\\",no-pty" {key}', id="a backslash escapes only the quote"),
        pytest.param('from="10.0.0.0/8" {key}', id="an address"),
        pytest.param('command="ssh-rsa AAAA" {key}', id="an algorithm in an option"),
        pytest.param("{key}\r", id="carriage return"),
    ],
)
def test_options_and_a_comment_may_stand_around_the_key(
    form: str, ssh_key: Callable[[str], str]
) -> None:
    assert is_authorized_key(form.format(key=ssh_key("ssh-ed25519")))


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("", id="nothing"),
        pytest.param("ssh-ed25519", id="no key"),
        pytest.param("no-pty", id="options only"),
        pytest.param("# {key}", id="a comment line"),
        pytest.param('command="echo {key}', id="quotes that never close"),
        pytest.param('command="a" b {key}', id="two words of options"),
        pytest.param("no-pty, no-X11-forwarding {key}", id="a blank between options"),
        pytest.param("ssh-ed25519 {key}", id="algorithm twice"),
        pytest.param("{swapped}", id="blob of another algorithm"),
        pytest.param("{upper}", id="algorithm in capitals"),
        pytest.param("ssh-ed25519 !!!!", id="not base64"),
        pytest.param("ssh-ed25519 ÄÖÜ=", id="not even ASCII"),
        pytest.param("{unpadded}", id="padding missing"),
        pytest.param("ssh-ed25519 AAAA", id="blob too short"),
        pytest.param("-----BEGIN OPENSSH PRIVATE KEY-----", id="a private key"),
    ],
)
def test_anything_else_is_no_entry(form: str, ssh_key: Callable[[str], str]) -> None:
    key = ssh_key("ssh-ed25519")
    blob = key.split()[1]
    name_alone = base64.b64encode(b"\0\0\0\x0bssh-ed25519xx").decode()
    assert name_alone.endswith("=")
    text = form.format(
        key=key,
        swapped=f"ssh-rsa {blob}",
        upper=f"SSH-ED25519 {blob}",
        unpadded=f"ssh-ed25519 {name_alone.rstrip('=')}",
    )
    assert not is_authorized_key(text)
