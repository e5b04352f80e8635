"""Command lines of the planes' processes, as neighbours.md 4.3 has them.

Pure: addresses, ports and paths in, arguments out. A flag has its reason beside it where the
specification gives none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from e2e.planes.node.slot import Slot
from e2e.planes.run_folder import RunFolder
from e2e.planes.topology import Rates

KARMADA_CONTROLLERS: Final = (
    "cluster,clusterStatus,binding,bindingStatus,execution,workStatus,namespace"
)
QUICK_CONTROLLERS: Final = (
    "--cluster-status-update-frequency=2s",
    "--cluster-success-threshold=2s",
    "--cluster-failure-threshold=2s",
    "--rate-limiter-max-delay=10s",
    "--rate-limiter-qps=200",
)
QUICK_SCHEDULER: Final = ("--rate-limiter-max-delay=10s",)


@dataclass(frozen=True, slots=True)
class Ground:
    """What all processes of one stack share."""

    run: RunFolder
    address: str
    etcd_port: int

    @property
    def etcd_url(self) -> str:
        return f"http://{self.address}:{self.etcd_port}"

    def kubeconfig_of(self, plane: str) -> str:
        return str(self.run.of_plane(plane, "admin.kubeconfig"))


def etcd(ground: Ground, peer_port: int) -> tuple[str, ...]:
    return (
        f"--data-dir={ground.run.etcd_data}",
        f"--listen-client-urls={ground.etcd_url}",
        f"--advertise-client-urls={ground.etcd_url}",
        f"--listen-peer-urls=http://{ground.address}:{peer_port}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        # Six planes share it; at the default of 2 GB a long run would end in a read-only store.
        f"--quota-backend-bytes={8 * 1024**3}",
    )


def kube_apiserver(
    ground: Ground,
    plane: str,
    port: int,
    *,
    rights_from_root: bool,
    slot: Slot | None = None,
    audience: str = "",
) -> tuple[str, ...]:
    """An API server.

    With `rights_from_root` it asks the Milo root who may do what; with a slot it has a node and
    runs pods; with an audience it believes tokens that another plane issued for it.
    """
    pki = ground.run.pki
    return (
        f"--etcd-servers={ground.etcd_url}",
        f"--etcd-prefix=/{plane}",
        f"--bind-address={ground.address}",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",
        # Else it looks for the machine's way to the world and does not start on one without.
        f"--advertise-address={ground.address}",
        f"--external-hostname={ground.address}",
        f"--service-cluster-ip-range={slot.services if slot else '10.0.0.0/24'}",
        f"--tls-cert-file={pki('server.crt')}",
        f"--tls-private-key-file={pki('server.key')}",
        f"--client-ca-file={pki('ca.crt')}",
        f"--service-account-issuer=https://{plane}.local",
        f"--service-account-key-file={pki('service-accounts.crt')}",
        f"--service-account-signing-key-file={pki('service-accounts.key')}",
        f"--token-auth-file={ground.run.of_plane(plane, 'tokens.csv')}",
        *(_rights_from_root(ground, plane) if rights_from_root else _RIGHTS_OF_ITS_OWN),
        *(_for_pods(ground) if slot else _WITHOUT_PODS),
        *(_believing(ground, plane, audience) if audience else ()),
        f"--requestheader-client-ca-file={pki('front-proxy-ca.crt')}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki('front-proxy.crt')}",
        f"--proxy-client-key-file={pki('front-proxy.key')}",
        f"--audit-policy-file={ground.run.audit_policy}",
        f"--audit-log-path={ground.run.audit_of(plane)}",
        # One file per run: the reader must not look for rotated ones.
        "--audit-log-maxsize=4096",
    )


_RIGHTS_OF_ITS_OWN: Final = ("--authorization-mode=Node,RBAC",)
_WITHOUT_PODS: Final = ("--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection",)


def _for_pods(ground: Ground) -> tuple[str, ...]:
    pki = ground.run.pki
    return (
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-client-certificate={pki('admin.crt')}",
        f"--kubelet-client-key={pki('admin.key')}",
        "--kubelet-preferred-address-types=InternalIP",
    )


def _believing(ground: Ground, plane: str, audience: str) -> tuple[str, ...]:
    """Tokens it does not know are shown to who issued them (operations.md 5, B)."""
    asked = ground.run.of_plane(plane, "issuer.kubeconfig")
    return (
        f"--authentication-token-webhook-config-file={asked}",
        "--authentication-token-webhook-version=v1",
        # What is believed is believed for this long, also when the token expires meanwhile.
        "--authentication-token-webhook-cache-ttl=5s",
        f"--api-audiences=https://{plane}.local,{audience}",
    )


def _rights_from_root(ground: Ground, plane: str) -> tuple[str, ...]:
    # neighbours.md 4.5: a root binding holds in the project, one written there grants nothing.
    return (
        "--authorization-mode=Webhook",
        "--authorization-webhook-version=v1",
        f"--authorization-webhook-config-file={ground.run.of_plane(plane, 'rights.kubeconfig')}",
        "--authorization-webhook-cache-authorized-ttl=1s",
        "--authorization-webhook-cache-unauthorized-ttl=1s",
    )


def kube_controller_manager(
    ground: Ground, plane: str, port: int, *, slot: Slot | None = None
) -> tuple[str, ...]:
    """Only the controllers our objects need, unless pods run there."""
    pki = ground.run.pki
    # The last fills the roles view, edit and admin, which people bind.
    few = "--controllers=namespace,garbagecollector,serviceaccount-token,clusterrole-aggregation"
    # Else it makes a folder for plugins of volumes outside the run folder.
    plugins = f"--flex-volume-plugin-dir={ground.run.path / 'tmp'}"
    return (
        *_serving(ground, plane, port),
        plugins if slot else few,
        f"--service-account-private-key-file={pki('service-accounts.key')}",
        f"--root-ca-file={pki('ca.crt')}",
    )


def kube_scheduler(ground: Ground, plane: str, port: int) -> tuple[str, ...]:
    return _serving(ground, plane, port)


def _serving(ground: Ground, plane: str, port: int) -> tuple[str, ...]:
    """What Kubernetes' own controllers have in common."""
    kubeconfig = ground.kubeconfig_of(plane)
    pki = ground.run.pki
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={ground.address}",
        f"--secure-port={port}",
        # Without them it would write a certificate of its own to /var/run/kubernetes.
        f"--tls-cert-file={pki('server.crt')}",
        f"--tls-private-key-file={pki('server.key')}",
    )


def karmada_aggregated_apiserver(ground: Ground, hub: str, port: int) -> tuple[str, ...]:
    kubeconfig = ground.kubeconfig_of(hub)
    pki = ground.run.pki
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--etcd-servers={ground.etcd_url}",
        f"--etcd-prefix=/{hub}-clusters",
        f"--tls-cert-file={pki('server.crt')}",
        f"--tls-private-key-file={pki('server.key')}",
        f"--bind-address={ground.address}",
        f"--secure-port={port}",
        "--audit-log-path=-",
        "--audit-log-maxage=0",
        "--audit-log-maxbackup=0",
    )


def karmada_webhook(ground: Ground, hub: str, port: int) -> tuple[str, ...]:
    return (
        f"--kubeconfig={ground.kubeconfig_of(hub)}",
        f"--bind-address={ground.address}",
        f"--secure-port={port}",
        f"--cert-dir={ground.run.webhook_certificates}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    )


def karmada_controller_manager(
    ground: Ground, hub: str, health_port: int, *, rates: Rates
) -> tuple[str, ...]:
    return (
        f"--kubeconfig={ground.kubeconfig_of(hub)}",
        "--leader-elect=false",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address={ground.address}:{health_port}",
        "--enable-cluster-resource-modeling=false",
        f"--controllers={KARMADA_CONTROLLERS}",
        *(QUICK_CONTROLLERS if rates is Rates.QUICK else ()),
    )


def karmada_scheduler(
    ground: Ground, hub: str, health_port: int, *, rates: Rates
) -> tuple[str, ...]:
    # Retries of a binding without a fitting cluster are the scheduler's own (neighbours.md 1.3).
    quick = QUICK_SCHEDULER if rates is Rates.QUICK else ()
    return (
        f"--kubeconfig={ground.kubeconfig_of(hub)}",
        "--leader-elect=false",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address={ground.address}:{health_port}",
        *quick,
    )
