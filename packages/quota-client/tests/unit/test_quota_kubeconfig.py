import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compute_quota_client import QuotaAuthError, QuotaClient, QuotaSettings, QuotaUsageError
from compute_quota_client._kubeconfig import Kubeconfig
from compute_quota_client._material import Material

CANARY = "canary-1b5e7d"
FIRST, SECOND = "first", "second"
SERVER = {"server": "https://milo.example.com:6443/some/path"}
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "print-token"}
Write = Callable[..., Path]


def load(path: Path, context: str | None = None) -> Material:
    return Kubeconfig(path, context, allow_exec=False).load()


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
        ("username", SERVER, {"username": "me", "password": CANARY}),
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
        ("cluster.server", {}, {}),
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


def test_token_ca_and_certificate_are_read_inline_or_from_files(write_kubeconfig: Write) -> None:
    encoded = base64.b64encode(b"pem").decode()
    inline = load(
        write_kubeconfig(
            {**SERVER, "certificate-authority-data": encoded, "tls-server-name": "milo.internal"},
            {"token": FIRST, "client-certificate-data": encoded, "client-key-data": encoded},
        )
    )
    assert inline == Material(
        origin="https://milo.example.com:6443",
        tls_server_name="milo.internal",
        ca=b"pem",
        certificate=b"pem",
        key=b"pem",
        token=FIRST,
    )
    path = write_kubeconfig(
        {**SERVER, "certificate-authority": "pem", "tls-server-name": "milo.internal"},
        {"tokenFile": "token", "client-certificate": "pem", "client-key": "sub/pem"},
    )
    (path.parent / "pem").write_bytes(b"pem")
    (path.parent / "sub").mkdir()
    (path.parent / "sub" / "pem").write_bytes(b"pem")
    (path.parent / "token").write_text(f"{FIRST}\n")
    assert load(path) == inline


def test_a_token_file_wins_over_a_token(write_kubeconfig: Write) -> None:
    path = write_kubeconfig(SERVER, {"token": FIRST, "tokenFile": "token"})
    (path.parent / "token").write_text(SECOND)
    assert load(path).token == SECOND


def test_a_mounted_secret_of_symlinks_is_inside_its_mount(write_kubeconfig: Write) -> None:
    path = write_kubeconfig(SERVER, {"tokenFile": "token"})
    version = path.parent / "..2026_01_01"
    version.mkdir()
    (version / "token").write_text(FIRST)
    (path.parent / "..data").symlink_to("..2026_01_01")
    (path.parent / "token").symlink_to("..data/token")
    assert load(path).token == FIRST


def test_yaml_is_read_and_the_context_asked_for_is_used(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        """
        current-context: one
        contexts:
        - {name: one, context: {cluster: c, user: u1}}
        - {name: two, context: {cluster: c, user: u2}}
        clusters:
        - {name: c, cluster: {server: "https://milo"}}
        users:
        - {name: u1, user: {token: first}}
        - {name: u2, user: {token: second}}
        """
    )
    assert load(path).token == FIRST
    assert load(path, "two").token == SECOND


@pytest.mark.parametrize(
    ("content", "argument"),
    [
        ("", "kubeconfig"),
        ("[]", "kubeconfig"),
        ("a: [", "kubeconfig"),
        ("\x00\x01", "kubeconfig"),
        (json.dumps({"contexts": [{"name": "x"}]}), "context"),
        (json.dumps({"clusters": "x"}), "kubeconfig.clusters"),
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
        load(path)
    assert refused.value.argument == argument
    assert CANARY not in f"{refused.value!r}{refused.value.__cause__!r}"


def test_yaml_without_a_parser_names_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("current-context: x")
    # The way Python itself marks a module that cannot be imported.
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(QuotaUsageError, match=r"datum-compute-quota-client\[kubeconfig\]"):
        load(path)


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


def test_no_text_form_of_a_credential_shows_it(write_kubeconfig: Write) -> None:
    material = load(write_kubeconfig(SERVER, {"token": CANARY}))
    assert material.token == CANARY
    assert CANARY not in repr(material)
    assert CANARY not in str(material)
