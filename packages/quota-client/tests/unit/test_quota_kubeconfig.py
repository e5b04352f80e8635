"""What the loader refuses is an error of this library that names the field.

The rules themselves are shown by the tests of `compute_kubeconfig`.
"""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compute_quota_client import QuotaAuthError, QuotaClient, QuotaSettings, QuotaUsageError

CANARY = "canary-1b5e7d"
SERVER = {"server": "https://milo.example.com:6443/some/path"}
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "print-token"}
Write = Callable[..., Path]


@pytest.mark.spec("Q-14")
@pytest.mark.fault("G11")
@pytest.mark.parametrize(
    ("field", "cluster", "user"),
    [
        ("server", {"server": "http://milo.example.com"}, {}),
        ("insecure-skip-tls-verify", {**SERVER, "insecure-skip-tls-verify": True}, {}),
        ("proxy-url", {**SERVER, "proxy-url": "http://proxy:3128"}, {}),
        ("auth-provider", SERVER, {"auth-provider": {"name": "oidc"}}),
        ("exec", SERVER, {"exec": EXEC}),
        ("username", SERVER, {"username": "me"}),
        ("password", SERVER, {"password": CANARY}),
        ("as", SERVER, {"as": "system:admin"}),
        ("as-groups", SERVER, {"as-groups": ["system:masters"]}),
        ("tokenFile", SERVER, {"tokenFile": "../outside"}),
        ("tokenFile", SERVER, {"tokenFile": "/etc/passwd"}),
        ("tokenFile", SERVER, {"tokenFile": "link-out"}),
        ("certificate-authority", {**SERVER, "certificate-authority": "../ca.crt"}, {}),
        ("client-certificate", SERVER, {"client-certificate": "/var/c", "client-key": "k"}),
        ("client-key", SERVER, {"client-certificate": "inside", "client-key": "/var/k"}),
        ("client-key", SERVER, {"client-certificate": "inside"}),
        ("client-certificate", SERVER, {"client-key": "inside"}),
        ("certificate-authority-data", {**SERVER, "certificate-authority-data": "%"}, {}),
        ("token", SERVER, {"token": f"{CANARY}\r\nX-Injected: 1"}),
        ("server", {}, {}),
        ("server", {"server": "https://milo.example.com/?a=b"}, {}),
        ("namespace-of-tenant", {**SERVER, "namespace-of-tenant": "x"}, {}),
        ("user", SERVER, {"tokenFile": ""}),
    ],
)
def test_what_weakens_the_connection_is_refused_by_name(
    write_kubeconfig: Write, field: str, cluster: dict[str, object], user: dict[str, object]
) -> None:
    path = write_kubeconfig(cluster, user)
    (path.parent / "inside").write_text("x")
    (path.parent.parent / "outside").write_text(CANARY)
    (path.parent / "link-out").symlink_to(path.parent.parent / "outside")
    with pytest.raises(QuotaUsageError) as refused:
        QuotaClient.from_kubeconfig(path)
    assert refused.value.argument == field
    assert field in str(refused.value)
    assert CANARY not in str(refused.value)


@pytest.mark.spec("Q-14")
def test_a_missing_kubeconfig_is_an_error_naming_its_path(tmp_path: Path) -> None:
    path = tmp_path / "nothing-here"
    with pytest.raises(QuotaAuthError, match=str(path)):
        QuotaClient.from_kubeconfig(path)


@pytest.mark.spec("Q-14")
@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        (SERVER, {"tokenFile": "missing"}),
        ({**SERVER, "certificate-authority": "missing"}, {}),
        (SERVER, {"client-certificate": "missing", "client-key": "missing"}),
    ],
)
def test_a_missing_file_is_an_error_naming_its_path(
    write_kubeconfig: Write, cluster: dict[str, object], user: dict[str, object]
) -> None:
    path = write_kubeconfig(cluster, user)
    with pytest.raises(QuotaAuthError, match=str(path.parent / "missing")):
        QuotaClient.from_kubeconfig(path)


@pytest.mark.spec("Q-14")
def test_exec_is_accepted_where_settings_allow_it(write_kubeconfig: Write) -> None:
    path = write_kubeconfig(SERVER, {"exec": EXEC})
    assert QuotaClient.from_kubeconfig(path, settings=QuotaSettings(allow_exec=True))


@pytest.mark.parametrize(
    ("content", "argument"),
    [
        ("", "kubeconfig"),
        ("{}", "context"),
        ("[]", "kubeconfig"),
        ("a: [", "kubeconfig"),
        ("\x00\x01", "kubeconfig"),
        (json.dumps({"current-context": "y", "contexts": [{"name": "x"}]}), "context"),
        (json.dumps({"clusters": "x"}), "cluster"),
        (
            json.dumps(
                {
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                }
            ),
            "cluster",
        ),
        (f"token: {CANARY}\n  bad: [", "kubeconfig"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_without_quoting_it(
    tmp_path: Path, content: str, argument: str
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(QuotaUsageError) as refused:
        QuotaClient.from_kubeconfig(path)
    assert refused.value.argument == argument
    assert CANARY not in f"{refused.value!r}{refused.value.__cause__!r}"


@pytest.mark.parametrize("content", [b"", b"\n", b"garbage"])
def test_a_ca_file_without_certificate_is_refused_and_never_the_systems(
    write_kubeconfig: Write, content: bytes
) -> None:
    path = write_kubeconfig({**SERVER, "certificate-authority": "ca.crt"})
    (path.parent / "ca.crt").write_bytes(content)
    with pytest.raises(QuotaUsageError, match="certificate-authority"):
        QuotaClient.from_kubeconfig(path)


def test_a_ca_or_certificate_that_is_none_is_refused_by_name(
    write_kubeconfig: Write, ca: bytes
) -> None:
    garbage = base64.b64encode(b"garbage").decode()
    with pytest.raises(QuotaUsageError, match="certificate-authority"):
        QuotaClient.from_kubeconfig(
            write_kubeconfig({**SERVER, "certificate-authority-data": garbage})
        )
    authority = base64.b64encode(ca).decode()
    user = {"client-certificate-data": authority, "client-key-data": garbage}
    with pytest.raises(QuotaUsageError, match="client-certificate"):
        QuotaClient.from_kubeconfig(write_kubeconfig(SERVER, user))


def test_the_context_asked_for_is_used(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        """
        current-context: absent
        contexts: [{name: two, context: {cluster: c, user: u}}]
        clusters: [{name: c, cluster: {server: "https://milo:6443/some/path"}}]
        users: [{name: u, user: {token: t}}]
        """
    )
    assert QuotaClient.from_kubeconfig(path, "two").project("acme").name == "acme"
    with pytest.raises(QuotaUsageError, match="context"):
        QuotaClient.from_kubeconfig(path)
