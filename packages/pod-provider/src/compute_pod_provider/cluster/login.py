"""Credentials of the cluster: the pod's service account, or a kubeconfig outside of a cluster.

One configuration for the official client and for kopf, so that both speak as the same identity. A
token of a service account is rotated by kubelet: it is read again, or every request fails within
the hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from compute_kubeconfig.problems import ConfigurationError, Problem

KUBECONFIG: Final = "KUBECONFIG"
IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
BEARER: Final = "BearerToken"
SCHEME: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Login:
    """Server and credentials, as kopf takes them."""

    server: str
    ca_path: str | None
    certificate_path: str | None
    private_key_path: str | None
    token: str | None


async def load_configuration(environ: Mapping[str, str]) -> kubernetes_client.Configuration:
    """In a pod its service account, elsewhere the kubeconfig that `KUBECONFIG` names."""
    configuration = kubernetes_client.Configuration()
    try:
        if environ.get(IN_CLUSTER):
            kubernetes_config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
        else:
            await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=environ.get(KUBECONFIG, ""), client_configuration=configuration
            )
    except kubernetes_config.ConfigException as refused:
        raise ConfigurationError([Problem(KUBECONFIG, str(refused))]) from refused
    return configuration


async def derive_login(configuration: kubernetes_client.Configuration) -> Login:
    """The credentials as they are now; a rotated token is read by the configuration's hook."""
    key = await configuration.get_api_key_with_prefix(BEARER, alias="authorization")
    token = key[len(SCHEME) :] if key and key.lower().startswith(SCHEME) else key
    return Login(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        token=token.strip() if token else None,
    )
