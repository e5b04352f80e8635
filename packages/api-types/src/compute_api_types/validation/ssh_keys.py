"""Rules 1–4: the annotation with `username:<authorized_keys entry>` lines.

The annotation may be as long as an object can be. Each entry is read once, character by character:
a regular expression that backtracks could take minutes.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from compute_api_types.labels import SSH_KEYS
from compute_api_types.validation.document import as_text
from compute_api_types.validation.errors import invalid, required

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node, Path
    from compute_api_types.validation.errors import Errors

# The key types of sshd(8), "AUTHORIZED_KEYS FILE FORMAT", and ssh-dss, which older servers still
# list there.
ALGORITHMS: Final = frozenset(
    {
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ecdsa-sha2-nistp256@openssh.com",
        "sk-ssh-ed25519@openssh.com",
        "ssh-dss",
        "ssh-ed25519",
        "ssh-rsa",
    }
)
_BLANKS: Final = " \t"


def review_ssh_keys(template: Node) -> Errors:
    # A wire oddity: the path leaves out `metadata`.
    path = template.path.field("annotations").key(SSH_KEYS)
    written = template.section("metadata").members("annotations").get(SSH_KEYS)
    if written is None:
        # 1: a virtual machine without a key allows no login.
        if template.section("spec").section("runtime").has("virtualMachine"):
            yield required(path, "a virtual machine needs at least one line username:key")
        return
    for index, line in enumerate(as_text(written).strip().split("\n")):
        yield from _review_line(line, path.index(index))


def _review_line(line: str, path: Path) -> Errors:
    username, colon, entry = line.partition(":")
    if not colon:
        # 2
        yield invalid(path, line, "must be username:key, where key is an authorized_keys entry")
        return
    if not username.strip():
        # 3
        yield required(path, "the username before the first ':' is missing")
    if not is_authorized_key(entry):
        # 4
        yield invalid(
            path,
            entry,
            "must be an authorized_keys entry: optional options, an algorithm such as ssh-ed25519, "
            "the key in base64, an optional comment",
        )


def is_authorized_key(entry: str) -> bool:
    """Whether this is an entry of authorized_keys: `[options ]algorithm base64[ comment]`."""
    entry = entry.strip()
    if entry.startswith("#"):
        # sshd skips the line as a comment: it allows no login.
        return False
    algorithm, rest = _split_word(entry)
    if algorithm not in ALGORITHMS:
        algorithm, rest = _split_word(entry[_end_of_options(entry) :])
    return algorithm in ALGORITHMS and _names_algorithm(_split_word(rest)[0], algorithm)


def _split_word(text: str) -> tuple[str, str]:
    """The first word and what follows it; blanks separate words."""
    text = text.lstrip(_BLANKS)
    end = min((at for blank in _BLANKS if (at := text.find(blank)) >= 0), default=len(text))
    return text[:end], text[end:]


def _end_of_options(entry: str) -> int:
    """Where the options end: at the first blank outside double quotes, as sshd reads them.

    `command="echo \\"a b\\"",no-pty ssh-rsa …` ends behind `no-pty`. Quotes that never close take
    the whole entry.
    """
    quoted = False
    before = ""
    for position, character in enumerate(entry):
        if character in _BLANKS and not quoted:
            return position
        # A backslash escapes the quote behind it and nothing else, not even another backslash.
        if character == '"' and before != "\\":
            quoted = not quoted
        before = character
    return len(entry)


def _names_algorithm(encoded: str, algorithm: str) -> bool:
    """Whether the blob begins with its algorithm, after four bytes of length (RFC 4253, 6.6)."""
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return False
    name = algorithm.encode("ascii")
    return blob.startswith(len(name).to_bytes(4, "big") + name)
