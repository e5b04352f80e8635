from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from compute_operator_kit.client.credentials import read_material
from compute_operator_kit.client.kubeconfig import (
    Access,
    KubeconfigError,
    MountedFile,
    load_in_cluster,
    load_kubeconfig,
)
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object

CANARY = "c4n4ry-t0k3n"


def a_kubeconfig() -> JsonObject:
    """A valid one; tests change a copy."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "hub",
        "preferences": {},
        "contexts": [
            {"name": "hub", "context": {"cluster": "hub", "user": "me", "namespace": "n"}}
        ],
        "clusters": [
            {
                "name": "hub",
                "cluster": {
                    "server": "https://hub.example:5443/base/",
                    "certificate-authority": "ca.crt",
                },
            }
        ],
        "users": [{"name": "me", "user": {"tokenFile": "token"}}],
    }


class Mount:
    """A directory as a pod mounts it, with a kubeconfig and what it names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()
        (folder / "ca.crt").write_text("CA")
        (folder / "token").write_text(CANARY + "\n")
        self.content = a_kubeconfig()

    @property
    def cluster(self) -> JsonObject:
        return self._member("clusters", "cluster")

    @property
    def user(self) -> JsonObject:
        return self._member("users", "user")

    def _member(self, group: str, name: str) -> JsonObject:
        entry = member_list(self.content, group)[0]
        assert isinstance(entry, dict)
        return member_object(entry, name)

    def add(self, group: str, entry: JsonObject) -> None:
        member_list(self.content, group).append(entry)

    def load(self, context: str = "", *, allow_exec: bool = False) -> Access:
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(self.content))
        return load_kubeconfig(path, context, allow_exec=allow_exec)


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path / "mount")


def test_a_good_kubeconfig_gives_server_and_credentials(mount: Mount) -> None:
    access = mount.load()

    assert access.server == "https://hub.example:5443/base"
    assert access.namespace == "n"
    assert read_material(access).token == CANARY
    assert read_material(access).ca == b"CA"


def test_a_context_is_chosen_by_name(mount: Mount) -> None:
    context: JsonObject = {"cluster": "hub", "user": "me", "namespace": "o"}
    mount.add("contexts", {"name": "other", "context": context})

    assert mount.load("other").namespace == "o"


def test_inline_data_beats_files(mount: Mount) -> None:
    mount.cluster["certificate-authority-data"] = base64.b64encode(b"INLINE").decode()

    assert read_material(mount.load()).ca == b"INLINE"


def test_a_token_file_beats_an_inline_token_because_it_rotates(mount: Mount) -> None:
    mount.user["token"] = CANARY[:4]

    assert read_material(mount.load()).token == CANARY


def spoil_cluster(key: str, value: Json) -> Callable[[Mount], None]:
    return lambda mount: mount.cluster.__setitem__(key, value)


def spoil_user(key: str, value: Json) -> Callable[[Mount], None]:
    return lambda mount: mount.user.__setitem__(key, value)


OUTSIDE = "is outside {mount}, the mount of its kubeconfig"


@pytest.mark.spec("S13")
@pytest.mark.fault("G11")
@pytest.mark.parametrize(
    ("spoil", "field", "reason"),
    [
        pytest.param(
            spoil_cluster("insecure-skip-tls-verify", True),
            "clusters[0].cluster.insecure-skip-tls-verify",
            "is refused: TLS is always verified",
            id="insecure-skip-tls-verify",
        ),
        pytest.param(
            spoil_cluster("insecure-skip-tls-verify", "yes"),
            "clusters[0].cluster.insecure-skip-tls-verify",
            "is refused: TLS is always verified",
            id="insecure-skip-tls-verify as text",
        ),
        pytest.param(
            spoil_cluster("proxy-url", "http://proxy:3128"),
            "clusters[0].cluster.proxy-url",
            "is refused: a proxy would see what we send",
            id="proxy-url",
        ),
        pytest.param(
            spoil_cluster("server", "http://hub.example"),
            "clusters[0].cluster.server",
            "must be an https URL",
            id="http server",
        ),
        pytest.param(
            spoil_cluster("server", f"https://u:{CANARY}@hub.example"),
            "clusters[0].cluster.server",
            "must be scheme, host, port and path, nothing else",
            id="credentials in the URL",
        ),
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
        pytest.param(
            spoil_cluster("server", "https://hub:x"),
            "clusters[0].cluster.server",
            "is not a URL",
            id="server is no URL",
        ),
        pytest.param(
            spoil_cluster("server", None),
            "clusters[0].cluster.server",
            "is required",
            id="no server",
        ),
        pytest.param(
            spoil_cluster("certificate-authority", "/etc/ssl/certs/ca.pem"),
            "clusters[0].cluster.certificate-authority",
            OUTSIDE,
            id="CA elsewhere",
        ),
        pytest.param(
            spoil_user("tokenFile", "../other/token"),
            "users[0].user.tokenFile",
            OUTSIDE,
            id="token by dots",
        ),
        pytest.param(
            spoil_user("client-key", "/proc/self/environ"),
            "users[0].user.client-key",
            OUTSIDE,
            id="key elsewhere",
        ),
        pytest.param(
            spoil_user("client-certificate", 5),
            "users[0].user.client-certificate",
            "must be a path",
            id="path is no text",
        ),
        pytest.param(
            spoil_user("auth-provider", {"name": "gcp"}),
            "users[0].user.auth-provider",
            "is refused",
            id="auth-provider",
        ),
        pytest.param(
            spoil_user("exec", {"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}),
            "users[0].user.exec",
            "is refused unless clients.allowExec is true",
            id="exec",
        ),
        pytest.param(
            spoil_user("as", "system:admin"),
            "users[0].user.as",
            "is not supported",
            id="impersonation",
        ),
        pytest.param(
            spoil_user("password", CANARY),
            "users[0].user.password",
            "is not supported",
            id="password",
        ),
        pytest.param(
            spoil_cluster("certificate-authority-data", "%%%"),
            "clusters[0].cluster.certificate-authority-data",
            "must be base64 text",
            id="data is no base64",
        ),
    ],
)
def test_tricks_are_refused_with_path_field_and_reason(
    mount: Mount, spoil: Callable[[Mount], None], field: str, reason: str
) -> None:
    spoil(mount)

    with pytest.raises(KubeconfigError) as refused:
        mount.load()

    path = mount.folder / "kubeconfig"
    wanted = reason.format(mount=mount.folder)
    assert f"{path}: {field}: {wanted}" in str(refused.value).splitlines()
    assert CANARY not in str(refused.value)


@pytest.mark.spec("S13")
@pytest.mark.fault("G11")
def test_a_trick_in_a_context_that_is_not_used_is_refused_too(mount: Mount) -> None:
    mount.add("users", {"name": "unused", "user": {"exec": {"command": "sh"}}})

    with pytest.raises(KubeconfigError, match=r"users\[1\]\.user\.exec: is refused unless"):
        mount.load()


def test_all_reasons_are_reported_at_once(mount: Mount) -> None:
    mount.cluster["proxy-url"] = "http://proxy"
    mount.user["auth-provider"] = {}

    with pytest.raises(KubeconfigError) as refused:
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

    with pytest.raises(KubeconfigError, match="is outside"):
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

    with pytest.raises(KubeconfigError, match="is outside"):
        read_material(access)


def test_the_links_of_a_projected_volume_are_followed(mount: Mount) -> None:
    # What the kubelet makes: token -> ..data/token, ..data -> ..2026_11_16
    version = mount.folder / "..2026_11_16"
    version.mkdir()
    (mount.folder / "token").rename(version / "token")
    (mount.folder / "..data").symlink_to(version.name)
    (mount.folder / "token").symlink_to("..data/token")

    assert read_material(mount.load()).token == CANARY


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError) as refused:
        load_kubeconfig(tmp_path / "absent")

    assert str(refused.value) == f"{tmp_path}/absent: cannot be read: No such file or directory"


def test_an_unreadable_kubeconfig_is_named(tmp_path: Path) -> None:
    # A directory instead of a file without permissions: tests may run as root, which may read all.
    with pytest.raises(KubeconfigError) as refused:
        load_kubeconfig(tmp_path)

    assert str(refused.value) == f"{tmp_path}: cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("{}", "current-context: is required where no context is configured"),
        ("current-context: x", "contexts: has no context of the wanted name"),
        ("users: [{user: {}, user: {}}]", "users[0].user: line 1: key is given twice"),
    ],
)
def test_a_kubeconfig_that_is_none_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    with pytest.raises(KubeconfigError) as refused:
        load_kubeconfig(path)

    assert str(refused.value) == f"{path}: {reason}"


def test_half_a_client_certificate_is_refused(mount: Mount) -> None:
    mount.user["client-certificate-data"] = base64.b64encode(b"x").decode()

    with pytest.raises(KubeconfigError, match="client certificate and key must be given together"):
        mount.load()


def test_a_user_without_credentials_is_refused(mount: Mount) -> None:
    mount.user.clear()

    with pytest.raises(KubeconfigError, match=r"users\[0\]\.user: holds no credentials"):
        mount.load()


@pytest.mark.parametrize("content", ["", "\n", "two words", "line\nbreak", "\x00", "ümlaut"])
def test_a_token_that_is_none_is_refused(mount: Mount, content: str) -> None:
    (mount.folder / "token").write_text(content)

    with pytest.raises(KubeconfigError, match="token: does not hold a token"):
        read_material(mount.load())


def test_exec_is_taken_where_it_is_allowed(mount: Mount) -> None:
    mount.user.clear()
    mount.user["exec"] = {"command": "get-token", "apiVersion": "client.authentication.k8s.io/v1"}

    assert mount.load(allow_exec=True).exec_plugin is not None


def test_an_interactive_plugin_is_refused(mount: Mount) -> None:
    mount.user["exec"] = {"command": "x", "interactiveMode": "Always"}

    with pytest.raises(KubeconfigError, match="nobody is there"):
        mount.load(allow_exec=True)


def test_neither_an_access_nor_its_material_prints_a_secret(mount: Mount) -> None:
    mount.user["token"] = CANARY
    access = mount.load()

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
    assert access.token == MountedFile(tmp_path, tmp_path / "token")


def test_outside_a_cluster_there_is_no_service_account(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="KUBERNETES_SERVICE_HOST: is not set"):
        load_in_cluster({}, tmp_path)


def test_a_pod_without_its_token_gets_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    with pytest.raises(KubeconfigError, match="token: cannot be read"):
        load_in_cluster(environ, tmp_path)
