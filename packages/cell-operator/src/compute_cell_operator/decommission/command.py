"""`compute-cell-operator decommission`: its arguments, its credentials and its exit code.

```
0  all objects were listed or deleted      1  one was unreadable or failed: run it again
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
from compute_cell_operator.decommission.removal import Removal, RemovalDeps
from compute_cell_operator.planes import HUB
from compute_kubeconfig.credentials import FileCredentials
from compute_kubeconfig.problems import ConfigurationError, Problem
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.client.transport.aiohttp import AiohttpTransport, Tls, open_session
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.keys import Kind, ObjectKey, Role
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.process.lifecycle import ExitCode
from compute_quota_client import QuotaAuthError, QuotaClient, QuotaSettings, QuotaUsageError

VERB: Final = "decommission"
_RESOURCE: Final = karmada.Cluster.RESOURCE
CLUSTER: Final = Kind(
    _RESOURCE.group, _RESOURCE.version, _RESOURCE.plural, _RESOURCE.kind, namespaced=False
)
CONTROLLER: Final = "decommission"


@dataclass(frozen=True, slots=True)
class Command:
    """The parsed arguments."""

    cell: str
    hub_kubeconfig: Path
    quota_kubeconfig: Path | None  # None by `--no-claims`: claims are left alone
    projects: tuple[str, ...] = ()
    is_executed: bool = False


def parse_command(program: str, arguments: Sequence[str]) -> Command:
    """The arguments after the verb; a bad one ends the process with exit code 2 and its reason."""
    parser = _build_parser(program)
    parsed = parser.parse_args(arguments)
    for name, values in (("--cell", [parsed.cell]), ("--project", parsed.project)):
        for value in values:
            if not names.is_dns_label(value):
                parser.error(f"argument {name}: {value!r} is no DNS label")
    return Command(
        cell=parsed.cell,
        hub_kubeconfig=parsed.hub_kubeconfig,
        quota_kubeconfig=parsed.quota_kubeconfig,
        projects=tuple(parsed.project),
        is_executed=parsed.execute,
    )


def _build_parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{program} {VERB}",
        description="Lists what a cell that never returns left on the hub and in the projects, and "
        "removes it with --execute.",
        allow_abbrev=False,
    )
    add_arguments(parser)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments after the verb, for its own parser and for the help of the whole command."""
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


async def run_command(
    command: Command, user_agent: str, clock: Clock, write_line: Callable[[str], None]
) -> ExitCode:
    """Runs the command over real connections.

    Raises:
        ConfigurationError: a kubeconfig is refused.
    """
    async with AsyncExitStack() as stack:
        hub = await _open_hub(stack, command, user_agent, clock)
        quota = await _open_quota(stack, command, user_agent)
        return await decommission(command, RemovalDeps(hub, quota, clock, write_line))


async def decommission(command: Command, deps: RemovalDeps) -> ExitCode:
    """Runs the command over any connections."""
    refusal = await _find_refusal(command.cell, deps.hub)
    if refusal is not None:
        deps.write_line(refusal)
        return ExitCode.REFUSED
    removal = Removal(command.cell, deps, is_executed=command.is_executed)
    is_complete = await removal.run(command.projects)
    return ExitCode.CLEAN if is_complete else ExitCode.FATAL


async def _find_refusal(cell: str, hub: KubeClient) -> str | None:
    """Why nothing may be deleted: only a cell without a Karmada Cluster is gone for good."""
    try:
        cluster = await hub.get(ObjectKey(HUB, CLUSTER, "", cell))
    except ReconcileError as error:
        return f"refused: Cluster {cell!r} cannot be read: {error}"
    if isinstance(cluster, Absent):
        return None
    return f"refused: Cluster {cell!r} exists; delete it first, if the cell never returns"


async def _open_hub(
    stack: AsyncExitStack, command: Command, user_agent: str, clock: Clock
) -> KubeClient:
    credentials = FileCredentials.from_kubeconfig(command.hub_kubeconfig, clock=clock)
    session = await stack.enter_async_context(open_session())
    url = urlsplit(credentials.server)
    tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)
    connection = RestConfig(
        plane=HUB,
        role=Role.HUB,
        transport=AiohttpTransport(session, f"{url.scheme}://{url.netloc}", tls),
        lane=FlowControl(HUB, clock),
        credentials=credentials,
        base_path=url.path.rstrip("/"),
        user_agent=user_agent,
    )
    return HttpKubeClient(connection, FieldOwner(CONTROLLER, user_agent))


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
