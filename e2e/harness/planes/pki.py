"""Writes the certificates and credentials of one stack into its run folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from e2e.harness.access.certificates import SERVER_NAMES, Authority, KeyPair, a_signing_key
from e2e.harness.planes.identities import ADMIN
from e2e.harness.processes.ports import LOOPBACK
from e2e.harness.processes.run_folder import RunFolder

FRONT_PROXY_USER: Final = "front-proxy-client"
AUTHORITY: Final = "planes-ca"


@dataclass(frozen=True, slots=True)
class Pki:
    """The parts that later steps need in memory."""

    authority: bytes
    admin: KeyPair
    front_proxy: KeyPair
    server: KeyPair


def write_pki(run: RunFolder, address: str, now: datetime, *, services: Iterable[str] = ()) -> Pki:
    """Creates all certificates for servers on loopback and on `address`; pods reach API servers at
    the addresses of their Services.
    """
    addresses = dict.fromkeys((LOOPBACK, address, *services))
    authority, front_authority = Authority(AUTHORITY, now), Authority("front-proxy-ca", now)
    pki = Pki(
        authority=authority.certificate,
        admin=authority.issue_client(ADMIN.user, ADMIN.groups),
        front_proxy=front_authority.issue_client(FRONT_PROXY_USER),
        server=authority.issue_server(addresses, SERVER_NAMES),
    )
    # With the key: kind clusters sign their own certificates with it.
    run.write_pair("ca", authority.pair)
    run.write_pair("front-proxy-ca", front_authority.pair)
    run.write_pair("server", pki.server)
    run.write_pair("admin", pki.admin)
    run.write_pair("front-proxy", pki.front_proxy)
    run.write_pair("service-accounts", a_signing_key())
    # karmada-webhook requires these file names.
    pki.server.write(run.webhook_certificates, "tls")
    return pki
