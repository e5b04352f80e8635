"""Command lines of the planes' processes, as in neighbours.md 4.3. Pure.

A flag has a comment with its reason if the specification gives none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from e2e.harness.planes.node_slot import NodeSlot
from e2e.harness.planes.topology import Rates
from e2e.harness.processes.run_folder import RunFolder

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
# Kubernetes evaluates every 15 s; a scenario waits for several evaluations.
QUICK_AUTOSCALERS: Final = ("--horizontal-pod-autoscaler-sync-period=2s",)


@dataclass(frozen=True, slots=True)
class StackSettings:
    """Address, paths and ports that all processes of one stack share."""

    run: RunFolder
    address: str
    etcd_port: int

    @property
    def etcd_url(self) -> str:
        return f"http://{self.address}:{self.etcd_port}"

    def kubeconfig_of(self, plane: str) -> str:
        return str(self.run.of_plane(plane, "admin.kubeconfig"))


def etcd(settings: StackSettings, peer_port: int) -> tuple[str, ...]:
    return (
        f"--data-dir={settings.run.etcd_data}",
        f"--listen-client-urls={settings.etcd_url}",
        f"--advertise-client-urls={settings.etcd_url}",
        f"--listen-peer-urls=http://{settings.address}:{peer_port}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        # Shared by six planes; at the default of 2 GB a long run would make it read-only.
        f"--quota-backend-bytes={8 * 1024**3}",
    )


def kube_apiserver(
    settings: StackSettings,
    plane: str,
    port: int,
    *,
    rights_from_root: bool,
    slot: NodeSlot | None = None,
    audience: str = "",
) -> tuple[str, ...]:
    """An API server.

    With `rights_from_root` it is authorized by the Milo root; with a slot it has a node and runs
    pods; with an audience it accepts tokens that another plane issued for it.
    """
    pki = settings.run.pki
    return (
        f"--etcd-servers={settings.etcd_url}",
        f"--etcd-prefix=/{plane}",
        f"--bind-address={settings.address}",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",
        # Otherwise it uses the machine's default route and does not start without one.
        f"--advertise-address={settings.address}",
        f"--external-hostname={settings.address}",
        f"--service-cluster-ip-range={slot.services if slot else '10.0.0.0/24'}",
        f"--tls-cert-file={pki('server.crt')}",
        f"--tls-private-key-file={pki('server.key')}",
        f"--client-ca-file={pki('ca.crt')}",
        f"--service-account-issuer=https://{plane}.local",
        f"--service-account-key-file={pki('service-accounts.crt')}",
        f"--service-account-signing-key-file={pki('service-accounts.key')}",
        f"--token-auth-file={settings.run.of_plane(plane, 'tokens.csv')}",
        *(_rights_from_root(settings, plane) if rights_from_root else _RIGHTS_OF_ITS_OWN),
        *(_for_pods(settings) if slot else _WITHOUT_PODS),
        *(_token_webhook_flags(settings, plane, audience) if audience else ()),
        f"--requestheader-client-ca-file={pki('front-proxy-ca.crt')}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki('front-proxy.crt')}",
        f"--proxy-client-key-file={pki('front-proxy.key')}",
        f"--audit-policy-file={settings.run.audit_policy}",
        f"--audit-log-path={settings.run.audit_of(plane)}",
        # One file per run; the reader does not look for rotated files.
        "--audit-log-maxsize=4096",
    )


_RIGHTS_OF_ITS_OWN: Final = ("--authorization-mode=Node,RBAC",)
_WITHOUT_PODS: Final = ("--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection",)


def _for_pods(settings: StackSettings) -> tuple[str, ...]:
    pki = settings.run.pki
    return (
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-client-certificate={pki('admin.crt')}",
        f"--kubelet-client-key={pki('admin.key')}",
        "--kubelet-preferred-address-types=InternalIP",
    )


def _token_webhook_flags(settings: StackSettings, plane: str, audience: str) -> tuple[str, ...]:
    """Unknown tokens are verified by their issuer (operations.md 5, B)."""
    asked = settings.run.of_plane(plane, "issuer.kubeconfig")
    return (
        f"--authentication-token-webhook-config-file={asked}",
        "--authentication-token-webhook-version=v1",
        # A verified token is accepted for this long, even if it expires meanwhile.
        "--authentication-token-webhook-cache-ttl=5s",
        f"--api-audiences=https://{plane}.local,{audience}",
    )


def _rights_from_root(settings: StackSettings, plane: str) -> tuple[str, ...]:
    # neighbours.md 4.5: a root binding applies in the project; one written there grants nothing.
    return (
        "--authorization-mode=Webhook",
        "--authorization-webhook-version=v1",
        f"--authorization-webhook-config-file={settings.run.of_plane(plane, 'rights.kubeconfig')}",
        "--authorization-webhook-cache-authorized-ttl=1s",
        "--authorization-webhook-cache-unauthorized-ttl=1s",
    )


def kube_controller_manager(
    settings: StackSettings,
    plane: str,
    port: int,
    *,
    slot: NodeSlot | None = None,
    has_autoscalers: bool = False,
) -> tuple[str, ...]:
    """Only the controllers that our objects need, unless pods run there."""
    pki = settings.run.pki
    # The last one fills the roles view, edit and admin.
    few = "--controllers=namespace,garbagecollector,serviceaccount-token,clusterrole-aggregation"
    few = f"{few},horizontal-pod-autoscaler-controller" if has_autoscalers else few
    # Otherwise it creates a plugin folder outside the run folder.
    plugins = f"--flex-volume-plugin-dir={settings.run.path / 'tmp'}"
    return (
        *_serving(settings, plane, port),
        plugins if slot else few,
        *(QUICK_AUTOSCALERS if has_autoscalers else ()),
        f"--service-account-private-key-file={pki('service-accounts.key')}",
        f"--root-ca-file={pki('ca.crt')}",
    )


def kube_scheduler(settings: StackSettings, plane: str, port: int) -> tuple[str, ...]:
    return _serving(settings, plane, port)


def _serving(settings: StackSettings, plane: str, port: int) -> tuple[str, ...]:
    """Flags that Kubernetes' own controllers share."""
    kubeconfig = settings.kubeconfig_of(plane)
    pki = settings.run.pki
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={settings.address}",
        f"--secure-port={port}",
        # Otherwise it writes its own certificate to /var/run/kubernetes.
        f"--tls-cert-file={pki('server.crt')}",
        f"--tls-private-key-file={pki('server.key')}",
    )


def karmada_aggregated_apiserver(settings: StackSettings, hub: str, port: int) -> tuple[str, ...]:
    kubeconfig = settings.kubeconfig_of(hub)
    pki = settings.run.pki
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--etcd-servers={settings.etcd_url}",
        f"--etcd-prefix=/{hub}-clusters",
        f"--tls-cert-file={pki('server.crt')}",
        f"--tls-private-key-file={pki('server.key')}",
        f"--bind-address={settings.address}",
        f"--secure-port={port}",
        "--audit-log-path=-",
        "--audit-log-maxage=0",
        "--audit-log-maxbackup=0",
    )


def karmada_webhook(settings: StackSettings, hub: str, port: int) -> tuple[str, ...]:
    return (
        f"--kubeconfig={settings.kubeconfig_of(hub)}",
        f"--bind-address={settings.address}",
        f"--secure-port={port}",
        f"--cert-dir={settings.run.webhook_certificates}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    )


def karmada_controller_manager(
    settings: StackSettings, hub: str, health_port: int, *, rates: Rates
) -> tuple[str, ...]:
    return (
        f"--kubeconfig={settings.kubeconfig_of(hub)}",
        "--leader-elect=false",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address={settings.address}:{health_port}",
        "--enable-cluster-resource-modeling=false",
        f"--controllers={KARMADA_CONTROLLERS}",
        *(QUICK_CONTROLLERS if rates is Rates.QUICK else ()),
    )


def karmada_scheduler(
    settings: StackSettings, hub: str, health_port: int, *, rates: Rates
) -> tuple[str, ...]:
    # The scheduler itself retries a binding without a matching cluster (neighbours.md 1.3).
    quick = QUICK_SCHEDULER if rates is Rates.QUICK else ()
    return (
        f"--kubeconfig={settings.kubeconfig_of(hub)}",
        "--leader-elect=false",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address={settings.address}:{health_port}",
        *quick,
    )
