"""`compute-cell-operator decommission`: its arguments, its credentials and its exit code.

```
0  everything was listed, or is gone       1  something was unreadable or failed: run it again
2  refused, nothing was written: a bad name, a bad kubeconfig, a Cluster that exists or cannot be
   read
```
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from compute_api_types import labels, names
from compute_api_types.neighbours import karmada
from compute_cell_operator.decommission.removal import Means, Removal
from compute_cell_operator.plane_names import HUB
from compute_operator_kit.clock import Clock
from compute_operator_kit.configuration import ConfigurationError
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.exchange import Connection
from compute_operator_kit.http_transport import AiohttpTransport, Tls, open_session
from compute_operator_kit.keys import Kind, ObjectKey, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.objects import Absent
from compute_operator_kit.process import ExitCode
from compute_operator_kit.strict_yaml import Problem
from compute_quota_client import QuotaAuthError, QuotaClient, QuotaSettings, QuotaUsageError

VERB: Final = "decommission"
_RESOURCE: Final = karmada.Cluster.RESOURCE
CLUSTER: Final = Kind(
    _RESOURCE.group, _RESOURCE.version, _RESOURCE.plural, _RESOURCE.kind, namespaced=False
)
CONTROLLER: Final = "decommission"


@dataclass(frozen=True, slots=True)
class Command:
    """What the person asked for."""

    cell: str
    hub_kubeconfig: Path
    quota_kubeconfig: Path | None  # None: claims are left alone, in so many words
    projects: tuple[str, ...] = ()
    is_executed: bool = False


def parse_command(program: str, arguments: Sequence[str]) -> Command:
    """The arguments after the verb; a bad one ends the process with exit code 2, saying why."""
    parser = _build_parser(program)
    found = parser.parse_args(arguments)
    for name, values in (("--cell", [found.cell]), ("--project", found.project)):
        for value in values:
            if not names.is_dns_label(value):
                parser.error(f"argument {name}: {value!r} is no DNS label")
    return Command(
        cell=found.cell,
        hub_kubeconfig=found.hub_kubeconfig,
        quota_kubeconfig=found.quota_kubeconfig,
        projects=tuple(found.project),
        is_executed=found.execute,
    )


def _build_parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{program} {VERB}",
        description="Lists what a cell that never returns left on the hub and in the projects, and "
        "removes it with --execute.",
        allow_abbrev=False,
    )
    parser.add_argument("--cell", required=True, metavar="NAME", help="the cell that is gone")
    parser.add_argument("--hub-kubeconfig", required=True, type=Path, metavar="F")
    claims = parser.add_mutually_exclusive_group(required=True)
    claims.add_argument("--quota-kubeconfig", type=Path, metavar="F")
    claims.add_argument("--no-claims", action="store_true", help="leave quota claims alone")
    parser.add_argument(
        "--project",
        action="append",
        default=[],
        metavar="P",
        help="a project whose hub Namespaces are gone; may be repeated",
    )
    parser.add_argument("--execute", action="store_true", help="delete what is listed")
    return parser


async def run_command(
    command: Command, user_agent: str, clock: Clock, say: Callable[[str], None]
) -> ExitCode:
    """Does what was asked for over real connections.

    Raises:
        ConfigurationError: a kubeconfig is refused.
    """
    async with AsyncExitStack() as stack:
        hub = await _open_hub(stack, command, user_agent, clock)
        quota = await _open_quota(stack, command, user_agent)
        return await decommission(command, Means(hub, quota, clock, say))


async def decommission(command: Command, means: Means) -> ExitCode:
    """Does what was asked for, over whatever connections."""
    refusal = await _find_refusal(command.cell, means.hub)
    if refusal is not None:
        means.say(refusal)
        return ExitCode.REFUSED
    removal = Removal(command.cell, means, is_executed=command.is_executed)
    is_complete = await removal.run(command.projects)
    return ExitCode.CLEAN if is_complete else ExitCode.FATAL


async def _find_refusal(cell: str, hub: Kube) -> str | None:
    """Why nothing may be removed: only a Cluster that is known not to exist is gone for good."""
    try:
        found = await hub.get(ObjectKey(HUB, CLUSTER, "", cell))
    except ReconcileError as error:
        return f"refused: Cluster {cell!r} cannot be read: {error}"
    if isinstance(found, Absent):
        return None
    return f"refused: Cluster {cell!r} exists; delete it first, if the cell never returns"


async def _open_hub(stack: AsyncExitStack, command: Command, user_agent: str, clock: Clock) -> Kube:
    credentials = FileCredentials.from_kubeconfig(command.hub_kubeconfig, clock=clock)
    session = await stack.enter_async_context(open_session())
    found = urlsplit(credentials.server)
    tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)
    connection = Connection(
        plane=HUB,
        role=Role.HUB,
        transport=AiohttpTransport(session, f"{found.scheme}://{found.netloc}", tls),
        lane=Lane(HUB, clock),
        credentials=credentials,
        base_path=found.path.rstrip("/"),
        user_agent=user_agent,
    )
    return KubeHttp(connection, Writer(CONTROLLER, user_agent))


async def _open_quota(
    stack: AsyncExitStack, command: Command, user_agent: str
) -> QuotaClient | None:
    if command.quota_kubeconfig is None:
        return None
    settings = QuotaSettings(user_agent=user_agent, field_manager=labels.QUOTA_MANAGER)
    try:
        client = QuotaClient.from_kubeconfig(command.quota_kubeconfig, settings=settings)
    except (QuotaAuthError, QuotaUsageError) as refused:
        raise ConfigurationError([Problem("--quota-kubeconfig", str(refused))]) from refused
    return await stack.enter_async_context(client)
