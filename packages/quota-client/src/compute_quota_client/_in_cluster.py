"""The credential of a pod's service account: token, CA and address as the kubelet mounts them.

The token expires within the hour and its file is replaced before that; a client that kept the first
one would be refused for the rest of its life. It is read again like the files of a kubeconfig.
"""

from __future__ import annotations

import os
from pathlib import Path

from compute_kubeconfig.access import HOST_VARIABLE, PORT_VARIABLE, Access
from compute_kubeconfig.mounted_files import MountedFile
from compute_quota_client._exceptions import QuotaUsageError


def find_service_account(
    server: str | None, mount: Path, ca_file: Path | None, system_ca: bool
) -> Access:
    """The pod's own cluster where no server is named, with the CA of the mount.

    Raises:
        QuotaUsageError: no server is named, and this is no pod.
    """
    if server is None:
        server = _own_cluster()
    if ca_file is None and not system_ca:
        ca_file = mount / "ca.crt"
    return Access(
        server=server,
        ca=None if ca_file is None else MountedFile(ca_file.parent, ca_file, "ca_file"),
        token=MountedFile(mount, mount / "token", "token"),
        path=mount,
    )


def _own_cluster() -> str:
    host, port = os.environ.get(HOST_VARIABLE, ""), os.environ.get(PORT_VARIABLE, "")
    if not host or not port:
        raise QuotaUsageError(
            f"is not given, and {HOST_VARIABLE} and {PORT_VARIABLE} are not set, as they are in a "
            "pod; name the server, or use from_kubeconfig",
            argument="server",
        )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
