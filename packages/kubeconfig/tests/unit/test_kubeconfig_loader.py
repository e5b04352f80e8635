from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kubeconfig_builders import CANARY, PLUGIN_API, Mount, in_base64

from compute_kubeconfig.access import ExecCommand, load_in_cluster, read_material
from compute_kubeconfig.kubeconfig import load_contexts, load_kubeconfig
from compute_kubeconfig.mounted_files import MAX_FILE_BYTES, MountedFile
from compute_kubeconfig.problems import FileError, UnreadableFileError


def test_a_good_kubeconfig_gives_server_and_credentials(mount: Mount) -> None:
    mount.cluster["tls-server-name"] = "hub.internal"
    access = mount.load()
    material = read_material(access)

    assert access.server == "https://hub.example:5443/base"
    assert access.namespace == "n"
    assert access.path == mount.folder / "kubeconfig"
    assert material.token == CANARY
    assert material.ca == mount.authority.cert_pem.bytes()
    assert material.tls_server_name == "hub.internal"


def test_token_ca_and_certificate_are_the_same_inline_or_from_files(mount: Mount) -> None:
    mount.user |= {"client-certificate": "tls.crt", "client-key": "sub/tls.key"}
    mount.write("tls.crt", b"CERTIFICATE")
    (mount.folder / "sub").mkdir()
    mount.write("sub/tls.key", b"KEY")
    from_files = read_material(mount.load())

    mount.cluster = {
        "server": "https://hub",
        "certificate-authority-data": in_base64(mount.authority.cert_pem.bytes()),
    }
    mount.clusters = [{"name": "hub", "cluster": mount.cluster}]
    mount.user = {
        "token": CANARY,
        "client-certificate-data": in_base64(b"CERTIFICATE"),
        "client-key-data": in_base64(b"KEY"),
    }

    assert read_material(mount.load()) == from_files


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

    assert read_material(load_kubeconfig(path)).token == "first"  # noqa: S105  # a test's own
    assert read_material(load_kubeconfig(path, "two")).token == "second"  # noqa: S105


def test_inline_data_beats_files(mount: Mount) -> None:
    mount.cluster["certificate-authority-data"] = in_base64(b"INLINE")

    assert read_material(mount.load()).ca == b"INLINE"


def test_data_of_several_lines_is_read(mount: Mount) -> None:
    text = in_base64(b"INLINE" * 20)
    mount.cluster["certificate-authority-data"] = f"{text[:64]}\n{text[64:]}\n"

    assert read_material(mount.load()).ca == b"INLINE" * 20


def test_a_token_file_beats_an_inline_token_because_it_rotates(mount: Mount) -> None:
    mount.user["token"] = CANARY[:4]

    assert read_material(mount.load()).token == CANARY


def spoil_cluster(key: str, value: object) -> Callable[[Mount], None]:
    return lambda mount: mount.cluster.__setitem__(key, value)


def spoil_user(key: str, value: object) -> Callable[[Mount], None]:
    return lambda mount: mount.user.__setitem__(key, value)


def spoil_file(key: str, value: object) -> Callable[[Mount], None]:
    return lambda mount: mount.more.__setitem__(key, value)


def refused_in_cluster(key: str, value: object, reason: str, name: str) -> object:
    return pytest.param(spoil_cluster(key, value), f"clusters[0].cluster.{key}", reason, id=name)


def refused_in_user(key: str, value: object, reason: str, name: str) -> object:
    return pytest.param(spoil_user(key, value), f"users[0].user.{key}", reason, id=name)


OUTSIDE = "is outside {mount}, the mount of its kubeconfig"
VERIFIED = "is refused: TLS is always verified"
PLAIN = "must be scheme, host, port and path, nothing else"
EXEC = {"command": "sh", "apiVersion": PLUGIN_API}


@pytest.mark.spec("S13")
@pytest.mark.fault("G11")
@pytest.mark.parametrize(
    ("spoil", "field", "reason"),
    [
        refused_in_cluster("insecure-skip-tls-verify", True, VERIFIED, "insecure"),
        refused_in_cluster("insecure-skip-tls-verify", "yes", VERIFIED, "insecure as text"),
        refused_in_cluster(
            "proxy-url", "http://proxy:3128", "is refused: a proxy would see what we send", "proxy"
        ),
        refused_in_cluster("server", "http://hub.example", "must be an https URL", "http server"),
        refused_in_cluster("server", f"https://u:{CANARY}@hub", PLAIN, "credentials in the URL"),
        refused_in_cluster("server", "https://hub/?a=b", PLAIN, "query in the URL"),
        *(
            pytest.param(
                spoil_cluster("server", f"https://hub.exa{character}mple:5443"),
                "clusters[0].cluster.server",
                "must be a URL of visible ASCII characters",
                id=f"server with {character!r}",
                marks=pytest.mark.spec("AT-22"),
            )
            for character in "\r\n\t \u202e"
        ),
        refused_in_cluster("server", "https://hub:x", "is not a URL", "server is no URL"),
        refused_in_cluster("server", None, "is required", "no server"),
        refused_in_cluster("tls-server-name", 5, "must be text", "server name is no text"),
        refused_in_cluster(
            "certificate-authority", "/etc/ssl/certs/ca.pem", OUTSIDE, "CA elsewhere"
        ),
        refused_in_cluster(
            "certificate-authority-data", "%%%", "must be base64 text", "data is no base64"
        ),
        refused_in_cluster(
            "certificate-authority-data", "\n", "must be base64 text", "data is a blank"
        ),
        refused_in_cluster("my-restriction", True, "is not supported", "unknown key"),
        refused_in_user("tokenFile", "../other/token", OUTSIDE, "token by dots"),
        refused_in_user("client-key", "/proc/self/environ", OUTSIDE, "key elsewhere"),
        refused_in_user("client-certificate", 5, "must be a path", "path is no text"),
        refused_in_user("client-certificate", "a\0b", "must be a path", "path with NUL"),
        refused_in_user("auth-provider", {"name": "gcp"}, "is refused", "auth-provider"),
        refused_in_user(
            "exec",
            EXEC,
            "is refused unless allow_exec is true (clients.allowExec of an operator)",
            "exec",
        ),
        refused_in_user("as", "system:admin", "is not supported", "impersonation"),
        refused_in_user("as-groups", ["system:masters"], "is not supported", "groups"),
        refused_in_user("username", "me", "is not supported", "username"),
        refused_in_user("password", CANARY, "is not supported", "password"),
        refused_in_user("token", 5, "must be text", "token is no text"),
        refused_in_user(
            "token",
            f"{CANARY}\r\nX-Injected: 1",
            "does not hold a token: one word of printable ASCII characters",
            "token with a line break",
        ),
        pytest.param(spoil_file("current-context", 5), "current-context", "must be text"),
        pytest.param(spoil_file("clusters", "x"), "clusters", "must be a list"),
        pytest.param(
            spoil_file("users", [{"user": None}]), "users[0]", "must have a name and a user"
        ),
        pytest.param(
            spoil_file("contexts", [{"name": "hub", "context": ""}]),
            "contexts[0].context",
            "must be a mapping of keys to values",
        ),
        pytest.param(
            spoil_file("contexts", [{"name": "hub", "context": {"cluster": 1}}]),
            "contexts[0].context.cluster",
            "must be text",
        ),
    ],
)
def test_tricks_are_refused_with_path_field_and_reason(
    mount: Mount, spoil: Callable[[Mount], None], field: str, reason: str
) -> None:
    spoil(mount)

    with pytest.raises(FileError) as refused:
        mount.load()

    path = mount.folder / "kubeconfig"
    wanted = reason.format(mount=mount.folder)
    assert f"{path}: {field}: {wanted}" in str(refused.value).splitlines()
    assert refused.value.field == field.rpartition(".")[2]
    assert CANARY not in str(refused.value)


@pytest.mark.spec("S13")
@pytest.mark.fault("G11")
def test_a_trick_in_a_context_that_is_not_used_is_refused_too(mount: Mount) -> None:
    mount.users.append({"name": "unused", "user": {"exec": {"command": "sh"}}})

    with pytest.raises(FileError, match=r"users\[1\]\.user\.exec: is refused unless"):
        mount.load()


def test_all_reasons_are_reported_at_once(mount: Mount) -> None:
    mount.cluster["proxy-url"] = "http://proxy"
    mount.user["auth-provider"] = {}

    with pytest.raises(FileError) as refused:
        mount.load()

    assert len(refused.value.problems) == 2


def test_an_explicit_wish_to_verify_is_no_trick(mount: Mount) -> None:
    mount.cluster["insecure-skip-tls-verify"] = False
    mount.cluster["proxy-url"] = ""

    assert mount.load().server


@pytest.mark.spec("S13")
@pytest.mark.fault("G11")
def test_a_link_out_of_the_mount_is_refused_at_start(mount: Mount, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(CANARY)
    (mount.folder / "token").unlink()
    (mount.folder / "token").symlink_to(tmp_path / "secret")

    with pytest.raises(FileError, match="is outside"):
        mount.load()


@pytest.mark.spec("S13")
@pytest.mark.fault("G11")
def test_a_link_swapped_out_of_the_mount_later_is_refused_when_read(
    mount: Mount, tmp_path: Path
) -> None:
    access = mount.load()
    (tmp_path / "secret").write_text(CANARY)
    (mount.folder / "token").unlink()
    (mount.folder / "token").symlink_to(tmp_path / "secret")

    with pytest.raises(FileError, match="is outside") as refused:
        read_material(access)

    assert refused.value.field == "tokenFile"


def test_a_loop_of_links_is_refused(mount: Mount) -> None:
    access = mount.load()
    (mount.folder / "token").unlink()
    (mount.folder / "token").symlink_to("token")

    with pytest.raises(FileError, match="token: "):
        read_material(access)
    with pytest.raises(FileError, match="token"):
        read_material(mount.load())


def test_the_links_of_a_projected_volume_are_followed(mount: Mount) -> None:
    # What the kubelet makes: token -> ..data/token, ..data -> ..2026_11_16
    version = mount.folder / "..2026_11_16"
    version.mkdir()
    (mount.folder / "token").rename(version / "token")
    (mount.folder / "..data").symlink_to(version.name)
    (mount.folder / "token").symlink_to("..data/token")

    assert read_material(mount.load()).token == CANARY


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError) as refused:
        load_kubeconfig(tmp_path / "absent")

    assert str(refused.value) == f"{tmp_path}/absent: cannot be read: No such file or directory"


def test_an_unreadable_kubeconfig_is_named(tmp_path: Path) -> None:
    # A directory instead of a file without permissions: tests may run as root, which may read all.
    with pytest.raises(UnreadableFileError) as refused:
        load_kubeconfig(tmp_path)

    assert str(refused.value) == f"{tmp_path}: cannot be read: Is a directory"


def test_a_missing_file_beside_it_is_named(mount: Mount) -> None:
    access = mount.load()
    (mount.folder / "token").unlink()

    with pytest.raises(UnreadableFileError) as refused:
        read_material(access)

    assert str(refused.value).startswith(f"{mount.folder}/token: cannot be read: ")
    assert refused.value.field == "tokenFile"


def test_a_file_that_is_too_large_is_refused_and_not_cut(mount: Mount) -> None:
    mount.write("token", b"x" * (MAX_FILE_BYTES + 1))

    with pytest.raises(FileError, match="token: is larger than 1 MiB"):
        read_material(mount.load())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"\xff", "is not UTF-8 text"),
        (b"{}", "current-context: is required where no context is configured"),
        (b"current-context: x", "contexts: has no context of the wanted name"),
        (b"users: [{user: {}, user: {}}]", "users[0].user: line 1: key is given twice"),
        (b" " * (MAX_FILE_BYTES + 1), "is larger than 1 MiB"),
        (
            json.dumps(
                {
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "users": None,
                }
            ).encode(),
            "clusters: has no cluster of the wanted name",
        ),
    ],
)
def test_a_kubeconfig_that_is_none_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(content)

    with pytest.raises(FileError) as refused:
        load_kubeconfig(path)

    assert str(refused.value) == f"{path}: {reason}"


@pytest.mark.parametrize(
    ("given", "missing"),
    [("client-certificate", "client-key"), ("client-key", "client-certificate")],
)
def test_half_a_client_certificate_is_refused(mount: Mount, given: str, missing: str) -> None:
    mount.user[f"{given}-data"] = in_base64(b"x")

    with pytest.raises(FileError, match=f"{missing}: is required beside {given}"):
        mount.load()


def test_a_user_without_credentials_is_refused(mount: Mount) -> None:
    mount.user.clear()

    with pytest.raises(FileError, match=r"users\[0\]\.user: holds no credentials"):
        mount.load()


@pytest.mark.parametrize("content", ["", "\n", "two words", "line\nbreak", "\x00", "ümlaut"])
def test_a_token_that_is_none_is_refused(mount: Mount, content: str) -> None:
    mount.write("token", content.encode())

    with pytest.raises(FileError, match="token: does not hold a token"):
        read_material(mount.load())


def test_exec_is_taken_where_it_is_allowed(mount: Mount) -> None:
    mount.user = {"exec": {**EXEC, "args": ["a", "b"], "env": [{"name": "MODE", "value": "test"}]}}

    assert mount.load(allow_exec=True).exec_command == ExecCommand(
        PLUGIN_API, ("sh", "a", "b"), (("MODE", "test"),)
    )


def test_a_program_with_a_path_is_beside_the_kubeconfig(mount: Mount) -> None:
    mount.user = {"exec": {**EXEC, "command": "./get-token"}}
    command = mount.load(allow_exec=True).exec_command

    assert command is not None
    assert command.argv == (str(mount.folder / "get-token"),)


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"interactiveMode": "Always"}, "interactiveMode", "must not be Always"),
        ({"command": ""}, "command", "is required"),
        ({"apiVersion": None}, "apiVersion", "is required"),
        ({"args": "a b"}, "args", "must be a list of texts"),
        ({"args": ["a", 1]}, "args", "must be a list of texts"),
        ({"env": {"A": "b"}}, "env", "must be a list of names and values"),
        ({"env": [{"name": "A"}]}, "env", "must be a list of names and values"),
    ],
)
def test_a_plugin_that_cannot_be_run_is_refused_by_its_field(
    mount: Mount, change: dict[str, object], field: str, reason: str
) -> None:
    mount.user["exec"] = {**EXEC, **change}

    with pytest.raises(FileError, match=rf"users\[0\]\.user\.exec\.{field}: {reason}"):
        mount.load(allow_exec=True)


def test_neither_an_access_nor_its_material_prints_a_secret(mount: Mount) -> None:
    mount.user |= {"token": CANARY, "exec": {**EXEC, "args": [CANARY]}}
    access = mount.load(allow_exec=True)

    assert CANARY not in repr(access)
    assert CANARY not in repr(read_material(access))


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "token").write_text(CANARY)
    (tmp_path / "namespace").write_text("compute-system\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    access = load_in_cluster(environ, tmp_path)

    assert access.server == "https://[fd00::1]:443"
    assert access.namespace == "compute-system"
    assert access.token == MountedFile(tmp_path, tmp_path / "token", "token")
    assert read_material(access).token == CANARY


@pytest.mark.parametrize(
    ("environ", "missing"),
    [
        ({}, "KUBERNETES_SERVICE_HOST"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "KUBERNETES_SERVICE_PORT"),
    ],
)
def test_outside_a_cluster_there_is_no_service_account(
    tmp_path: Path, environ: dict[str, str], missing: str
) -> None:
    with pytest.raises(FileError, match=f"{missing}: is not set"):
        load_in_cluster(environ, tmp_path)


def test_a_pod_without_its_token_gets_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    with pytest.raises(UnreadableFileError, match="token: cannot be read"):
        load_in_cluster(environ, tmp_path)


# --- personal files -------------------------------------------------------------------------------


@pytest.fixture
def personal(tmp_path: Path) -> Path:
    """A file such as minikube and others write together: certificates elsewhere, and a context that
    an operator must not use.
    """
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "token").write_text(CANARY)
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "config"
    path.write_text(
        f"""
        current-context: mine
        contexts:
        - {{name: other, context: {{cluster: loose, user: old}}}}
        - {{name: mine, context: {{cluster: c, user: u}}}}
        clusters:
        - {{name: loose, cluster: {{server: "http://dev", insecure-skip-tls-verify: true}}}}
        - {{name: c, cluster: {{server: "https://milo"}}}}
        users:
        - {{name: old, user: {{auth-provider: {{name: x}}, as: root}}}}
        - {{name: u, user: {{tokenFile: "{tmp_path}/elsewhere/token"}}}}
        """
    )
    return path


def test_of_a_personal_file_only_the_context_in_use_is_judged(personal: Path) -> None:
    assert load_contexts(personal, is_personal=True).names == ("other", "mine")
    access = load_kubeconfig(personal, is_personal=True)
    assert access.server == "https://milo"
    assert read_material(access).token == CANARY
    with pytest.raises(FileError) as refused:
        load_kubeconfig(personal, "other", is_personal=True)
    assert "clusters[0].cluster.insecure-skip-tls-verify" in str(refused.value)
    assert "users[0].user.as" in str(refused.value)


def test_the_same_file_is_refused_to_a_service(personal: Path) -> None:
    with pytest.raises(FileError, match="is outside"):
        load_kubeconfig(personal)
    with pytest.raises(FileError, match="insecure-skip-tls-verify"):
        load_contexts(personal)
